"""Stop: shut the gate in one transaction, then ring (protocol §7).

Guarantees, once request_stop has returned: no call of the run or of its children passes the gate
any more; every call that had not started is voided or frozen; the answer is the same however
often it is asked for. Touches Postgres only; the doorbells after the commit may be lost.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import doorbell, pausepoints
from agentruns.errors import BadInput
from agentruns.models import Grant, Run, StopRequest, ToolCall
from agentruns.protocol.classify import interruption
from agentruns.protocol.drain import begin_drain, drain_deadline
from agentruns.protocol.ledger import SWEEPER, clock, lock_tree, move_call, move_run, person, record
from agentruns.queries import stop_answer
from agentruns.states import NOT_YET_IN_FLIGHT

SIGNALS = ("user", "admin", "api", "budget", "handoff", "dependency")


def request_stop(
    run_id: str,
    *,
    by: Any,
    signal: str = "user",
    reason: str = "",
    pending: str = StopRequest.Pending.DISCARD,
) -> StopRequest:
    """Stop the run and its children; return the one StopRequest of this epoch.

    If the run had ended by itself before, the StopRequest says so (`won_by` completion), and what
    it started is stopped all the same. `by` is None where no person asked. Raises NotFound, or
    BadInput for a `signal`, `reason` or `pending` that is not one.
    """
    _check(signal, reason, pending)
    asked = {"by": by, "signal": signal, "reason": reason, "pending": pending}
    pausepoints.reach(run_id, "stop:begin")
    with transaction.atomic(durable=True):
        began = clock().began
        run, *descendants = lock_tree(run_id)
        acting = [each for each in (run, *descendants) if each.is_active]
        for each in acting:
            _freeze(each, began, **asked)
        # The answer of each names those below it, as the stop has left them.
        for each in acting:
            _conclude(each)
        stop = StopRequest.objects.filter(run=run, epoch=run.epoch).first()
        if stop is None:
            stop = _too_late(run, began, **asked)
    pausepoints.reach(run_id, "stop:committed")
    return stop


def stop_newborn(run: Run, parent: Run) -> None:
    """Stop a child in the transaction that bears it, because its parent is stopped or ended."""
    _freeze(run, clock().began, by=None, signal="dependency", reason=f"parent {parent.pk}")
    _conclude(run)


def _check(signal: str, reason: str, pending: str) -> None:
    if signal not in SIGNALS:
        raise BadInput(_("Unknown source of a stop: %(signal)s") % {"signal": signal})
    if pending not in StopRequest.Pending.values:
        raise BadInput(_("“pending” is either discard or freeze."), field="pending")
    if len(reason) > 500 or "\x00" in reason:
        raise BadInput(_("The reason may have at most 500 characters."), field="reason")


def _freeze(
    run: Run,
    began: datetime,
    *,
    by: Any,
    signal: str,
    reason: str,
    pending: str = StopRequest.Pending.DISCARD,
) -> None:
    """Status, epoch, grant and waiting calls: everything that shuts the gate for one run."""
    actor = person(by) if by else SWEEPER
    now = clock().now
    interrupted = interruption(run)
    move_run(
        run,
        "request_cancel",
        actor=actor,
        data={
            "signal": signal,
            "reason": reason,
            "pending": pending,
            "interrupted": interrupted,
            "epoch": run.epoch + 1,
        },
        epoch=run.epoch + 1,
        drain_deadline=drain_deadline(now),
        suspended_reason="",
    )
    Grant.objects.filter(run=run, revoked_at=None).update(revoked_at=now)
    verb = "freeze" if pending == StopRequest.Pending.FREEZE else "void"
    for call in ToolCall.objects.filter(run=run, state__in=NOT_YET_IN_FLIGHT):
        data = {"was": call.state}
        reason_code = "approval_withdrawn" if call.state == "awaiting_approval" else "stopped"
        move_call(run, call, verb, actor=actor, data=data, reason=reason_code, ended_at=now)
    StopRequest.objects.create(
        run=run,
        epoch=run.epoch,
        signal=signal,
        requested_by=by,
        reason=reason,
        pending=pending,
        interrupted=interrupted,
        requested_at=began,
        no_new_effect_at=clock().now,
    )
    begin_drain(run)
    doorbell.ring_driver(run.pk)


def _conclude(run: Run) -> StopRequest:
    """Keep the answer: it is what this request gets, now and at every repeat."""
    stop = StopRequest.objects.get(run=run, epoch=run.epoch)
    stop.answer = stop_answer(run, stop)
    stop.save(update_fields=["answer"])
    return stop


def _too_late(
    run: Run, began: datetime, *, by: Any, signal: str, reason: str, pending: str
) -> StopRequest:
    """The run had ended before: record that it was asked, and that completion won."""
    StopRequest.objects.create(
        run=run,
        epoch=run.epoch,
        signal=signal,
        requested_by=by,
        reason=reason,
        pending=pending,
        won_by=StopRequest.WonBy.COMPLETION,
        requested_at=began,
        no_new_effect_at=run.ended_at or began,
        settled_at=run.ended_at,
    )
    record(run, "stop.too_late", actor=person(by) if by else SWEEPER, ended_as=run.status)
    return _conclude(run)
