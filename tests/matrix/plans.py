"""A cell as a drill's plan."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from zlib import crc32

from django.conf import settings
from django.contrib.auth.models import User

from agentruns.drill.faults import FAULTS, SERVICES
from agentruns.drill.play import OWNER, UNANSWERED, Plan
from agentruns.drill.points import Point, point
from agentruns.models import Run, ToolCall
from agentruns.protocol.budget import raise_budget, usage
from tests.matrix.axes import Disturbance, Mode, World
from tests.matrix.cells import Cell
from tools.world.faults import Fault, Faults

TIMEOUT = 12.0  # seconds: longer than the tools of the matrix wait
OF_WORLD = {
    Disturbance.SLOW: FAULTS["slow"],
    Disturbance.TIMEOUT: replace(FAULTS["hang"], seconds=TIMEOUT),
    Disturbance.ERROR: FAULTS["error"],
}
ARMED_AT = "call:1:claimed"  # where a fault is armed that has to be there before the boundary
UNDO_ARMED_AT = "undo:2:started"


# When the outside acts, in horizons of its tool since it hung up: from, to.
LATE_BY = {Disturbance.LATE: (0.28, 0.75), Disturbance.LATER: (1.3, 3.4)}


@dataclass
class _Points:
    """Points with what is done there, as a plan wants them."""

    also: dict[Point, Callable[[str], object]] = field(default_factory=dict)
    keep: list[Point] = field(default_factory=list)
    stop: list[Point] = field(default_factory=list)
    stop_undo: list[Point] = field(default_factory=list)


def plan_of(cell: Cell) -> Plan:
    """What to play. Whoever is kept is let go by the player: see play.py."""
    boundary, way = cell.boundary, cell.boundary.way
    at = point(boundary.point)
    points = _Points()
    _press(cell, points)
    points.keep += [point(each) for each in (way.stalls_at, boundary.last_turn) if each]
    gathered = (at,) if cell.is_shared else ()
    points.keep += gathered
    _arm(cell, points)
    if way.time_limit:
        limit = way.time_limit
        points.also[point(ARMED_AT)] = lambda run_id: _limit(run_id, limit)
    points.also.setdefault(at, lambda _run_id: None)  # so that the boundary must be reached
    lead = {*map(point, way.lose_at), *points.keep} - {at}
    lost = (boundary.point,) if cell.disturbance is Disturbance.LOST else ()
    is_killed = cell.disturbance is Disturbance.KILL and not cell.is_shared
    return Plan(
        scenario=cell.scenario,
        parent=way.parent,
        also_at=points.also,
        pause_at=(point(way.pause_at),) if way.pause_at else (),
        stop_at=tuple(points.stop),
        stop_undo_at=tuple(points.stop_undo),
        twice_at=(at,) if cell.disturbance is Disturbance.TWICE else (),
        kill_at=(at,) if is_killed else (),
        gather_at=gathered,
        keep_at=tuple(points.keep),
        lose_at=tuple(map(point, dict.fromkeys(way.lose_at + lost))),
        may_miss=frozenset(lead - points.also.keys() - set(points.stop)),
        pending="freeze" if cell.mode is Mode.FREEZE else "discard",
        verdict=UNANSWERED if way.is_unanswered else "approved",
        resumes=way.resumes,
        undoes=way.undoes,
    )


def _press(cell: Cell, points: _Points) -> None:
    """Where the run is stopped, or its undo: on the way to the boundary, and at it."""
    way, at = cell.boundary.way, cell.boundary.point
    points.stop += [point(each) for each in (way.stop_at, at if cell.is_stopped else "") if each]
    stopped_at = (way.stop_undo_at, at if cell.mode is Mode.STOP_UNDO else "")
    points.stop_undo += [point(each) for each in stopped_at if each]


def _arm(cell: Cell, points: _Points) -> None:
    """Have the world do wrong with the cell's own effect, and with no other's."""
    boundary, fault = cell.boundary, OF_WORLD.get(cell.disturbance)
    if cell.disturbance.is_late:
        fault = replace(FAULTS["late"], seconds=lateness(cell))
    number = 2 if boundary.point.startswith("undo:") else 1
    if fault is not None:
        before = UNDO_ARMED_AT if number == 2 else ARMED_AT
        armed_at = boundary.point if boundary.world is World.AFTER else before
    elif boundary.way.fault:
        fault, armed_at = FAULTS[boundary.way.fault], ARMED_AT
    else:
        return
    meant = replace(fault, service=SERVICES[cell.tool.name])
    points.also[point(armed_at)] = lambda run_id: _break(run_id, number, meant)


def lateness(cell: Cell) -> float:
    """Seconds: for each cell another span, and the same each time."""
    least, most = LATE_BY[cell.disturbance]
    share = crc32(cell.id.encode()) / 2**32
    horizon = cell.tool.horizon * settings.LOOKUP_HORIZON_SCALE
    return horizon * (least + share * (most - least))


def _break(run_id: str, number: int, fault: Fault) -> None:
    key = ToolCall.objects.get(run=run_id, number=number).request_id
    if fault.service == "smtp":
        key = f"+{run_id[-4:].lower()}@"  # the script's @run, in the address
    Faults(settings.WORLD_DIR).add(replace(fault, key=key))


def _limit(run_id: str, seconds: int) -> None:
    run = Run.objects.get(pk=run_id)
    limit = ceil(usage(run).seconds) + seconds
    raise_budget(run_id, by=User.objects.get(username=OWNER), time_limit=limit)
