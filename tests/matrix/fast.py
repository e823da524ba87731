"""The part of the matrix that every test run plays: a diagonal through all of its axes."""

from tests.matrix.axes import BOUNDARIES, Mode
from tests.matrix.cells import Cell, cells

PER_BOUNDARY = 1


def diagonal() -> list[Cell]:
    """A cell of each boundary, so that every disturbance, tier and mode comes up often.

    Those are taken of which the fewest like them have been taken.
    """
    taken: list[Cell] = []
    for boundary in BOUNDARIES:
        possible = [c for c in cells() if c.boundary == boundary and not c.left_out]
        for _number in range(min(PER_BOUNDARY, len(possible))):
            best = min(possible, key=lambda cell: _likeness(cell, taken))
            taken.append(best)
            possible.remove(best)
    return [*taken, *(cell for cell in _late() if cell not in taken)]


def _late() -> list[Cell]:
    """An outside that acts late, before its horizon and after it, of a run that was stopped right
    before and of one that goes on.
    """
    return [
        cell
        for cell in cells()
        if cell.boundary.point == "call:1:gate"
        and cell.is_found_late
        and cell.mode in (Mode.DISCARD, Mode.NO_STOP)
        and not cell.left_out
    ]


def _likeness(cell: Cell, taken: list[Cell]) -> tuple[int, int, int]:
    """How many of those taken share its disturbance, its tier, its mode."""
    return (
        sum(each.disturbance == cell.disturbance for each in taken),
        sum(each.tier == cell.tier for each in taken),
        sum(each.mode == cell.mode for each in taken),
    )
