"""What is checked after each cell: I1 to I12, what leaked, and how the run ended."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agentruns.drill.play import Played
from agentruns.drill.report import leaks_of
from agentruns.models import LedgerEvent, Run, ToolCall
from agentruns.protocol.stop import request_stop
from agentruns.states import STOPPED_RUN
from agentruns.verify import Scope, verify
from tests.matrix.axes import Disturbance
from tests.matrix.cells import Cell
from tools.world.record import effects


@dataclass(frozen=True)
class Result:
    """One cell as it was played. `wrong` is empty if all is well."""

    cell: Cell
    run_id: str
    seconds: float
    wrong: tuple[str, ...] = ()
    ledger: tuple[str, ...] = ()  # of a run that something is wrong with


@dataclass(frozen=True)
class Ended:
    """A cell that came to its end, or to nothing (`trouble`)."""

    cell: Cell
    run_id: str
    seconds: float
    played: Played | None = None
    answers: tuple[dict[str, Any], ...] = ()  # to each Stop
    trouble: str = ""


def check(ended: list[Ended]) -> list[Result]:
    """Look at many cells at once: the world's record is read as a whole."""
    runs = Run.objects.in_bulk([each.run_id for each in ended])
    parents = [run.parent_id for run in runs.values() if run.parent_id]
    breaches = _breaches([*runs, *parents])
    world = effects(settings.WORLD_DIR)
    results = []
    for each in ended:
        run = runs.get(each.run_id)
        wrong = [each.trouble] if each.trouble else []
        wrong += breaches[each.run_id]
        if run is not None:
            wrong += breaches[run.parent_id or ""]
            wrong += [f"LEAKED {leak['why']}" for leak in leaks_of(run, world)]
            wrong += _of_the_end(each, run)
            wrong += _of_the_answers(each, run)
            wrong += _of_what_was_late(each, run)
        ledger = tuple(_ledger(each.run_id)) if wrong else ()
        results.append(Result(each.cell, each.run_id, each.seconds, tuple(wrong), ledger))
    return results


def _breaches(run_ids: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for result in verify(Scope(world_dir=settings.WORLD_DIR, run_ids=tuple(run_ids))):
        for breach in result.breaches:
            found[breach.run_id].append(f"{result.invariant.code} {breach.what}")
    return found


def _of_the_end(each: Ended, run: Run) -> Iterator[str]:
    """I10, and that a run which nobody stopped is not lost."""
    if each.trouble:
        return
    if each.played is not None and not each.played.is_settled:
        yield f"I10 it did not come to rest: {run.status}"
    expected = STOPPED_RUN if _should_stop(each.cell) else ("completed",)
    waits = run.status == "suspended" and run.suspended_reason == "dependency"
    if run.status not in expected and not (waits and not _should_stop(each.cell)):
        yield f"it ended as {run.status} {run.failure}, not as {' or '.join(expected)}"
    if (waits or run.status == "stopped_dirty") and each.cell.tool.has_lookup:
        yield f"it is {run.status}, though what is in doubt can be looked up"


def _should_stop(cell: Cell) -> bool:
    """Whether the last word on the run is a Stop."""
    way = cell.boundary.way
    if way.undoes or cell.boundary.point == "resume:begin":
        return False
    if way.resumes:
        return cell.is_stopped
    return cell.is_stopped or bool(way.stop_at or way.time_limit or way.parent)


def was_sent(run: Run) -> bool:
    """Whether the outside got the call at all: an executor that is held up for too long on its way
    from the gate sends nothing.
    """
    call = ToolCall.objects.get(run=run, number=1)
    return (call.state, call.reason) != ("failed", "too_late")


def has_turned_up(cell: Cell, run: Run) -> bool:
    """Whether the effect that came late is on record: that of the call, or of its second item."""
    call = ToolCall.objects.get(run=run, number=1)
    if cell.boundary.is_between_items:
        return call.state == "landed" and call.items.count() > 1
    return call.state == "landed"


def _of_what_was_late(each: Ended, run: Run) -> Iterator[str]:
    """L1: nobody said that it did not happen, or else it was told with an alarm that it did."""
    if each.trouble or not each.cell.is_found_late or not was_sent(run):
        return
    call = ToolCall.objects.get(run=run, number=1)
    if not has_turned_up(each.cell, run):
        yield f"L1 what came late is not on record: call 1 is {call.state}"
    if each.cell.boundary.is_between_items:
        return
    kinds = set(LedgerEvent.objects.filter(call=call).values_list("kind", flat=True))
    # On a machine with too much to do, the look-up at the end may come when it has arrived.
    if "call.failed" in kinds and each.cell.disturbance is Disturbance.LATE:
        yield "L1 it came before the end, and was said not to have happened"
    if ("call.failed" in kinds) != ("call.contradicted" in kinds):
        yield f"L1 what was said of it was not put right: {sorted(kinds)}"


def _of_the_answers(each: Ended, run: Run) -> Iterator[str]:
    """I5: the same body each time, now, too."""
    answers = list(each.answers)
    if run.status in STOPPED_RUN:
        answers.append(request_stop(run.pk, by=run.owner).answer)
    by_epoch: dict[int, list[Any]] = defaultdict(list)
    for answer in answers:
        by_epoch[answer["epoch"]].append(answer)
    for epoch, same in by_epoch.items():
        if any(answer != same[0] for answer in same):
            yield f"I5 the stop of epoch {epoch} was answered in different words: {same}"


def _ledger(run_id: str) -> Iterator[str]:
    numbers = dict(ToolCall.objects.filter(run=run_id).values_list("pk", "number"))
    events = LedgerEvent.objects.filter(run=run_id).order_by("seq")
    for event in events:
        call = f" call {numbers[event.call_id]}" if event.call_id else ""
        told = {key: event.data[key] for key in ("reason", "why", "epoch") if key in event.data}
        yield f"{event.seq} {event.at:%M:%S.%f} {event.kind}{call} {told or ''}".rstrip()
