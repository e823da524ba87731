"""Advance: after each fact, decide what the run does next (protocol §6).

Guarantees that the effects of a turn go out one after another, in the order in which the model
wrote them, while reads overlap; and that a run waits under a name for what it waits for.
Runs under the run's lock; only rings doorbells, never acts.
"""

from collections.abc import Iterable

from agentruns import doorbell
from agentruns.models import Output, Run, ToolCall
from agentruns.protocol.ledger import EXECUTOR, OpenCall, clock, move_run, open_calls
from agentruns.protocol.units import waits_for_mate
from agentruns.states import MAY_TURN_UP, READY
from tools import prepared

HELD = ("paused", "budget")  # suspended by a decision, which only another one takes back


def is_next(call: ToolCall | OpenCall, calls: Iterable[OpenCall]) -> bool:
    """Whether `call` may go now: reads at once, effects when no earlier effect is open."""
    return call.is_eager or not any(
        other.number < call.number for other in calls if not other.is_eager
    )


# Whether the effect of the call `c` of the run `r` stands already, or may yet: what was not found
# after a doubt may turn up late. By the thread's runs first: of
# a tool with the same arguments there may be a million elsewhere.
_DOUBLES = f"""FROM agentruns_run sibling
    JOIN agentruns_toolcall other ON other.run_id = sibling.id
   WHERE sibling.thread_id = r.thread_id AND c.tier <> 'read_only'
     AND other.id <> c.id AND other.tool = c.tool AND other.effect_digest = c.effect_digest
     AND other.undo_state = ''
     AND (other.state IN ('landed', 'in_flight', 'in_doubt')
          OR (other.state = 'failed' AND other.reason IN {MAY_TURN_UP})
          OR (other.run_id = c.run_id AND other.number < c.number
              AND other.state IN ('approved', 'prepared', 'awaiting_approval')))"""
IS_DOUBLE = f"EXISTS (SELECT 1 {_DOUBLES})"


def is_duplicate(call: ToolCall) -> bool:
    """Whether the same effect stands, is on its way, or may yet come, in this thread (R35)."""
    of_call = "agentruns_toolcall c JOIN agentruns_run r ON r.id = c.run_id WHERE c.id = %s"
    return bool(prepared.row(f"SELECT {IS_DOUBLE} FROM {of_call}", [call.pk])[0])  # noqa: S608


def double_of(call: ToolCall) -> ToolCall | None:
    """The call whose effect `call` would repeat: the last one that left, or else is to leave."""
    last = f"(SELECT other.id {_DOUBLES} ORDER BY other.gate_passed_at DESC NULLS LAST LIMIT 1)"
    of_call = "agentruns_toolcall c JOIN agentruns_run r ON r.id = c.run_id WHERE c.id = %s"
    found = prepared.row(f"SELECT {last} FROM {of_call}", [call.pk])  # noqa: S608  (columns)
    return ToolCall.objects.filter(pk=found[0]).first() if found else None


def advance(run: Run, calls: list[OpenCall] | None = None) -> None:
    """Ring for the run's next step, or suspend or complete it. `calls`: the open ones, if known."""
    if run.status not in ("running", "suspended") or run.lease_holder:
        return
    if run.suspended_reason in HELD:
        return
    calls = open_calls(run) if calls is None else calls
    if not calls:
        _next_turn(run)
        return
    candidates = [call for call in calls if is_next(call, calls)]
    if reason := _waits_for(candidates, calls):
        _suspend(run, reason)
        return
    _wake(run)
    for call in candidates:
        if call.state in READY and not call.is_postponed:
            doorbell.ring_task("agentruns.tasks.act", call.pk, run.epoch)


def _waits_for(candidates: list[OpenCall], calls: list[OpenCall]) -> str:
    """What the run waits for, if every call that could go waits for somebody."""
    states = {
        "awaiting_approval" if waits_for_mate(call, calls) else call.state for call in candidates
    }
    if states <= {"in_doubt", "awaiting_approval"}:
        return "dependency" if "in_doubt" in states else "approval"
    return ""


def _next_turn(run: Run) -> None:
    """Think on, unless the last answer was complete and asked for nothing.

    An answer that was cut off (its worker died) has not ended the run, with calls or without.
    """
    _wake(run)
    has_ended = Output.complete.filter(run=run, turn=run.turn).exists()
    if has_ended and not ToolCall.objects.filter(run=run, turn=run.turn).exists():
        move_run(run, "complete", actor=EXECUTOR, ended_at=clock().now)
    else:
        doorbell.ring_task("agentruns.tasks.think", run.pk, run.epoch)


def _suspend(run: Run, reason: str) -> None:
    if run.suspended_reason == reason and run.status == "suspended":
        return
    _wake(run)
    move_run(run, "suspend", actor=EXECUTOR, data={"reason": reason}, suspended_reason=reason)


def _wake(run: Run) -> None:
    if run.status == "suspended":
        move_run(run, "unsuspend", actor=EXECUTOR, suspended_reason="")
