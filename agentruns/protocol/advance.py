"""Advance: after each fact, decide what the run does next (protocol §6).

Guarantees that the effects of a turn go out one after another, in the order in which the model
wrote them, while reads overlap; and that a run waits under a name for what it waits for.
Runs under the run's lock; only rings doorbells, never acts.
"""

from django.db.models import Q

from agentruns import doorbell
from agentruns.models import Output, Run, ToolCall
from agentruns.protocol.ledger import EXECUTOR, clock, move_run
from agentruns.protocol.units import waits_for_mate
from agentruns.states import CALL, READY
from tools.contract import Tier

OPEN_STATES = [s for s in CALL.states if s not in CALL.terminal]
HELD = ("paused", "budget")  # suspended by a decision, which only another one takes back


def open_calls(run: Run) -> list[ToolCall]:
    """The calls of the run whose outcome is not known yet, in the model's order."""
    return list(ToolCall.objects.filter(run=run, state__in=OPEN_STATES).order_by("number"))


def is_next(call: ToolCall, calls: list[ToolCall]) -> bool:
    """Whether `call` may go now: reads at once, effects when no earlier effect is open."""
    return call.is_eager or not any(
        other.number < call.number for other in calls if not other.is_eager
    )


def is_duplicate(run: Run, call: ToolCall) -> bool:
    """Whether the same effect stands, or is on its way, in this thread already (R35)."""
    if call.tier == Tier.READ_ONLY:
        return False
    same = ToolCall.objects.filter(
        run__thread=run.thread_id,
        tool=call.tool,
        args_digest=call.args_digest,
        undo_state=ToolCall.UndoState.NONE,
    ).exclude(pk=call.pk)
    earlier = Q(run=run, number__lt=call.number, state__in=(*READY, "awaiting_approval"))
    return same.filter(Q(state__in=("landed", "in_flight", "in_doubt")) | earlier).exists()


def advance(run: Run) -> None:
    """Ring for the run's next step, or suspend or complete it."""
    if run.status not in ("running", "suspended") or run.lease_holder:
        return
    if run.suspended_reason in HELD:
        return
    calls = open_calls(run)
    if not calls:
        _next_turn(run)
        return
    candidates = [call for call in calls if is_next(call, calls)]
    if reason := _waits_for(candidates, calls):
        _suspend(run, reason)
        return
    _wake(run)
    for call in candidates:
        if call.state in READY and call.next_attempt_at is None:
            doorbell.ring_task("agentruns.tasks.act", call.pk, run.epoch)


def _waits_for(candidates: list[ToolCall], calls: list[ToolCall]) -> str:
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
