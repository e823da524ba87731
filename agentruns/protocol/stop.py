"""Stop: shut the gate in one transaction, then ring (protocol §7).

Guarantees, once request_stop has returned: no call of the run or of its children passes the gate
any more, but for the last steps of an atomic unit that had begun; every other call that had not
started is voided or frozen; the answer says what Stop still waits for, and is the same however
often it is asked for. Touches Postgres only; the doorbells after the commit may be lost.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import doorbell, pausepoints
from agentruns.errors import BadInput
from agentruns.models import Grant, Run, StopRequest
from agentruns.models.shown import merged, seal
from agentruns.protocol import items, units
from agentruns.protocol.classify import interruption
from agentruns.protocol.drain import begin_drain, drain_deadline
from agentruns.protocol.ledger import (
    CALLS,
    SWEEPER,
    add,
    born,
    clock,
    lock_tree,
    move_run,
    person,
    record,
    save,
    stop_of,
)
from agentruns.queries import stop_answer
from agentruns.states import NOT_YET_IN_FLIGHT

SIGNALS = ("user", "admin", "api", "budget", "handoff", "dependency")
REASON_LENGTH = 500
WAITING = "WHERE t.run_id = %s AND t.state = ANY(%s) ORDER BY t.number"


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
    asked = Asked(by, signal, reason, pending)
    asked.check()
    pausepoints.reach(run_id, "stop:begin")
    with transaction.atomic(durable=True):
        began = clock().began
        run, *descendants = lock_tree(run_id)
        acting = [each for each in (run, *descendants) if each.is_active]
        for each in acting:
            _shut_gate(each, began, asked)
        # The answer of each names those below it, as the stop has left them.
        for each in acting:
            _conclude(each, asked)
        if run not in acting and not stop_of(run):
            _too_late(run, began, asked)
        # As kept, so that the first answer is like every other, to the byte.
        stop = stop_of(run)
        assert stop is not None
    pausepoints.reach(run_id, "stop:committed")
    return stop


def stop_newborn(run: Run, parent: Run) -> None:
    """Stop a child in the transaction that bears it, because its parent is stopped or ended."""
    asked = Asked(None, "dependency", f"parent {parent.pk}")
    _shut_gate(run, clock().began, asked)
    _conclude(run, asked)


@dataclass(frozen=True)
class Asked:
    """Who asks for a stop (None: no person), from where, why, and what of what has not started."""

    by: Any
    signal: str
    reason: str
    pending: str = StopRequest.Pending.DISCARD

    @property
    def actor(self) -> str:
        return person(self.by) if self.by else SWEEPER

    def check(self) -> None:
        """Raise BadInput for what cannot be kept."""
        if self.signal not in SIGNALS:
            sentence = _("Unknown source of a stop: %(signal)s") % {"signal": self.signal}
            raise BadInput(sentence, field="signal")
        if self.pending not in StopRequest.Pending.values:
            raise BadInput(_("“pending” is either discard or freeze."), field="pending")
        if len(self.reason) > REASON_LENGTH or "\x00" in self.reason:
            raise BadInput(_("The reason may have at most 500 characters."), field="reason")

    def as_fields(self) -> dict[str, Any]:
        """The columns of a StopRequest that it fills."""
        return {
            "requested_by": self.by,
            "signal": self.signal,
            "reason": self.reason,
            "pending": self.pending,
        }


def _shut_gate(run: Run, began: datetime, asked: Asked) -> None:
    """Status, epoch, grant and waiting calls, for one run; then drain, as far as that goes now."""
    now = clock().now
    interrupted = interruption(run)
    facts = asked.as_fields() | {"interrupted": interrupted, "requested_at": began}
    stop = StopRequest(run=run, epoch=run.epoch + 1, no_new_effect_at=now, **facts)
    move_run(
        run,
        "request_cancel",
        actor=asked.actor,
        data={
            "signal": asked.signal,
            "reason": asked.reason,
            "pending": asked.pending,
            "interrupted": interrupted,
            "epoch": run.epoch + 1,
        },
        sets=born(stop),
        epoch=run.epoch + 1,
        drain_deadline=drain_deadline(now),
        suspended_reason="",
    )
    Grant.objects.filter(run=run, revoked_at=None).update(revoked_at=now)
    _put_away(run, now, asked)
    stop.no_new_effect_at = clock().now
    stop.save(force_insert=True)
    begin_drain(run)
    doorbell.ring_driver(run.pk)


def _put_away(run: Run, now: datetime, asked: Asked) -> None:
    """Void or freeze every call that has not started, but for those that finish a unit."""
    verb = "freeze" if asked.pending == StopRequest.Pending.FREEZE else "void"
    waiting = CALLS.all(WAITING, [run.pk, list(NOT_YET_IN_FLIGHT)])
    begun = units.begun_units(run) if any(call.unit for call in waiting) else set()
    for call in waiting:
        if units.is_finishing(call, begun):
            continue
        reason = "approval_withdrawn" if call.state == "awaiting_approval" else "stopped"
        data = {"was": call.state}
        items.end(run, call, verb, actor=asked.actor, reason=reason, data=data, ended_at=now)


def _conclude(run: Run, asked: Asked) -> None:
    """Keep the answer: it is what this request gets, now and at every repeat."""
    stop = stop_of(run)
    assert stop is not None
    stop.requested_by = asked.by
    sets = save(stop, answer=stop_answer(run, stop))
    sets = merged(sets, seal(stop, ["no_new_effect_at"]))
    record(run, "stop.answered", actor=asked.actor, sets=sets, epoch=stop.epoch)


def _too_late(run: Run, began: datetime, asked: Asked) -> None:
    """The run had ended before: record that it was asked, and that completion won."""
    stop = StopRequest(
        run=run,
        epoch=run.epoch,
        won_by=StopRequest.WonBy.COMPLETION,
        requested_at=began,
        no_new_effect_at=run.ended_at or began,
        settled_at=run.ended_at,
        **asked.as_fields(),
    )
    sets = add(stop)
    record(run, "stop.too_late", actor=asked.actor, sets=sets, ended_as=run.status)
    _conclude(run, asked)
