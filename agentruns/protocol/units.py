"""Atomic units: what may only be finished or not begun (protocol §9).

Guarantees that a unit begins only with all of its steps at hand; that one which has begun is
finished though its run is being stopped, each step through the gate, under the authority that it
began with; and that a step which cannot be done any more ends the steps after it.

A unit is the calls of one turn that share `unit`. Runs under the run's lock.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agentruns import doorbell
from agentruns.models import Grant, Run, StopRequest, ToolCall
from agentruns.protocol.ledger import CALLS, EXECUTOR, OpenCall, clock, move_call
from agentruns.states import NOT_YET_IN_FLIGHT, READY

WAITING = """
WHERE t.run_id = %s AND t.unit <> '' AND t.state = ANY(%s)
ORDER BY t.turn, t.unit, t.unit_step"""
BEGUN = ("in_flight", "in_doubt", "landed")

Begun: TypeAlias = set[tuple[int, str]]  # turn and unit


def begun_units(run: Run) -> Begun:
    """The units of the run of which a step has started."""
    steps = ToolCall.objects.filter(run=run, state__in=BEGUN).exclude(unit="")
    return set(steps.values_list("turn", "unit"))


def is_finishing(call: ToolCall, begun: Begun) -> bool:
    """Whether Stop spares a call that has not started: its unit has begun."""
    return (call.turn, call.unit) in begun


def unfinished(run: Run) -> list[ToolCall]:
    """The steps that begun units still lack, in order."""
    steps = CALLS.all(WAITING, [run.pk, list(NOT_YET_IN_FLIGHT)])
    begun = begun_units(run) if steps else set()
    return [step for step in steps if is_finishing(step, begun)]


def in_words(call: ToolCall) -> str:
    """“transfer, step 2 of 2”."""
    name = call.unit.partition(":")[0]
    place = {"unit": name, "step": call.unit_step, "of": call.unit_of}
    return _("%(unit)s, step %(step)d of %(of)d") % place


def ring_next(run: Run) -> bool:
    """While the run is being stopped: ring for each begun unit's next step. Returns whether there
    is any unit to finish.
    """
    steps = unfinished(run)
    now = clock().now if steps else None
    for step in steps:
        if now and may_finish(run, step):
            due = step.next_attempt_at or now
            after = max(0.0, (due - now).total_seconds())
            doorbell.ring_task("agentruns.tasks.act", step.pk, step.epoch, after=after)
    return bool(steps)


def freeze_unfinished(run: Run, now: datetime, *, actor: str) -> None:
    """The time to finish is over: what has not gone is kept for a person."""
    for step in unfinished(run):
        data = {"was": step.state, "reason": "unit_unfinished"}
        fields = {"reason": "unit_unfinished", "ended_at": now}
        move_call(run, step, "freeze", actor=actor, data=data, **fields)


def break_up(run: Run, call: ToolCall) -> None:
    """`call` is known not to happen: neither may the steps of its unit after it."""
    if not call.unit:
        return
    after = _mates(call).filter(
        unit_step__gt=call.unit_step, state__in=(*NOT_YET_IN_FLIGHT, "frozen")
    )
    for mate in after.order_by("unit_step"):
        data = {"was": mate.state, "reason": "unit_broken"}
        fields = {"reason": "unit_broken", "ended_at": clock().now}
        move_call(run, mate, "void", actor=EXECUTOR, data=data, **fields)


def waits_for_mate(call: ToolCall | OpenCall, calls: Iterable[OpenCall]) -> bool:
    """Whether a person has yet to decide on another step of the call's unit, among `calls`."""
    return call.unit != "" and any(
        other.state == "awaiting_approval" and (other.turn, other.unit) == (call.turn, call.unit)
        for other in calls
    )


def may_finish(run: Run, call: ToolCall) -> bool:
    """Whether `call` is the next step of a unit that had begun when the run was stopped."""
    is_of_then = run.is_stopping and call.epoch == run.epoch - 1
    return is_of_then and call.unit != "" and call.unit_step > 1 and _has_its_turn(call)


def is_whole(call: ToolCall) -> bool:
    """Whether the unit adds up for `call` to start: each step is on record once; the first one
    starts if all others are ready to, the others once those before have landed.
    """
    if not call.unit:
        return True
    states = dict(_mates(call).values_list("unit_step", "state"))
    if sorted(states) != list(range(1, call.unit_of + 1)) or _mates(call).count() != call.unit_of:
        return False
    if call.unit_step > 1:
        return _has_its_turn(call)
    return all(state in READY for state in states.values())


def grant_of(run: Run) -> Grant | None:
    """The authority under which a unit that had begun when Stop came is finished: the grant that
    this stop, and nobody before it, revoked.
    """
    stop = StopRequest.objects.filter(run=run, epoch=run.epoch).first()
    if stop is None:
        return None
    return Grant.objects.filter(run=run, revoked_at__gte=stop.requested_at).first()


def _has_its_turn(call: ToolCall) -> bool:
    earlier = _mates(call).filter(unit_step__lt=call.unit_step)
    return list(earlier.values_list("state", flat=True)) == ["landed"] * (call.unit_step - 1)


def _mates(call: ToolCall) -> QuerySet[ToolCall]:
    """All steps of the call's unit, itself too."""
    return ToolCall.objects.filter(run=call.run_id, turn=call.turn, unit=call.unit)
