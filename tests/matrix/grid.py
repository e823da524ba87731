"""The grid of results, for a terminal."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.matrix.axes import BOUNDARIES, DISTURBANCE_WORDS, TIERS, Boundary, Disturbance, Mode
from tests.matrix.cells import Cell, cells
from tests.matrix.check import Result

PASSED, FAILED, LEFT_OUT, NOT_PLAYED = "passed", "failed", "left out", "not played"
WIDTHS = (18, 10)


@dataclass(frozen=True)
class Grid:
    """Every cell with what became of it."""

    results: dict[Cell, Result]
    seconds: float

    def state(self, cell: Cell) -> str:
        if cell in self.results:
            return FAILED if self.results[cell].wrong else PASSED
        return LEFT_OUT if cell.left_out else NOT_PLAYED

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.state(cell) for cell in cells())

    @property
    def failed(self) -> list[Result]:
        return [result for result in self.results.values() if result.wrong]


def lines_of(grid: Grid) -> Iterator[str]:
    """One line for each boundary: how many passed, how many failed, by disturbance."""
    heads = [DISTURBANCE_WORDS[each][0] for each in Disturbance]
    first, other = WIDTHS
    yield " " * first + "".join(f"{_short(head):>{other}}" for head in heads)
    for boundary in BOUNDARIES:
        row = "".join(f"{_of(grid, boundary, each):>{other}}" for each in Disturbance)
        yield f"{boundary.point:<{first}}{row}"
    yield ""
    for result in sorted(grid.failed, key=lambda each: each.cell.id):
        yield f"FAILED {result.cell.id}  {result.run_id}"
        yield from (f"       {wrong}" for wrong in result.wrong)
    counts = grid.counts
    yield (
        f"{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[LEFT_OUT]} left out, "
        f"{counts[NOT_PLAYED]} not played, in {grid.seconds / 60:.1f} minutes"
    )


def _short(head: str) -> str:
    words = {"Redis restart": "Redis", "Postgres restart": "Postgres", "slow outside": "slow"}
    words |= {"acts, time-out": "time-out", "acts, 500": "500", "lost doorbell": "lost bell"}
    return words.get(head, head)


def _of(grid: Grid, boundary: Boundary, disturbance: Disturbance) -> str:
    here = Counter(
        grid.state(Cell(boundary, disturbance, tier, mode)) for tier in TIERS for mode in Mode
    )
    if here[FAILED]:
        return f"{here[FAILED]} FAILED"
    if here[PASSED]:
        return f"{here[PASSED]}"
    return "·" if here[NOT_PLAYED] else "n/a"
