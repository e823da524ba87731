"""Doubt: find out what became of a call, and never send it again (protocol §8).

Guarantees that a call in doubt is looked up with growing pauses, a bounded number of times; that
“it is not there” is not believed while the outside may still act on what it was sent; that it is
looked up a few times more when it is, so that what lands later still is on record; that what
cannot be looked up waits for a person; and that the person's answer is kept with a name.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import pausepoints
from agentruns.errors import BadInput, WrongState
from agentruns.models import ToolCall
from agentruns.protocol import items
from agentruns.protocol.ledger import (
    SWEEPER,
    clock,
    lock_call,
    lock_call_if_free,
    person,
    record,
    save,
)
from agentruns.protocol.outcome import NO_REPORT, doubt, fail, land
from agentruns.states import ANSWERED_NOT_LANDED, NOT_LANDED
from tools.contract import LookupResult, NotLanded, Receipt, Unknown

LOOKUP_LIMIT = 6  # look-ups of what cannot be asked, where there is no horizon to wait for
LONGEST_PAUSE = 600  # seconds between two look-ups, until the last of them
# When it is looked for once more, in horizons since the doubt began: after its end, too.
LATE_LOOKUPS = (2, 4, 8)
ANSWERS = ("happened", "did_not_happen", "cannot_tell")


def begin_lookup(call_id: str) -> ToolCall | None:
    """Take the next look-up of a call: one in doubt, or one that may turn up late. None if none
    is due. Its `looked_up_at` is when this one began.
    """
    with transaction.atomic(durable=True):
        call = lock_call(call_id)[1]
        now = clock().now
        if call.next_lookup_at is None or call.next_lookup_at > now:
            return None
        lookups = call.lookups + 1
        again = _next_lookup(call, now, lookups)
        save(call, lookups=lookups, looked_up_at=now, next_lookup_at=again)
        return call


def record_lookup(call_id: str, found: LookupResult, *, begun_at: datetime) -> None:
    """What the outside system said: a receipt, that there is nothing, or nothing to go by.
    `begun_at`: an answer is as old as its question.
    """
    with transaction.atomic(durable=True):
        run, call = lock_call(call_id)
        found = items.understood(call, found)
        sets = save(call, last_lookup=_LAST[type(found)])
        what = type(found).__name__
        record(run, "call.looked_up", actor=SWEEPER, call=call, sets=sets, found=what)
        if isinstance(found, Receipt):
            land(run, call, found, actor=SWEEPER, by="lookup")
        elif isinstance(found, NotLanded) and call.state == "in_doubt":
            assert call.horizon_at is not None
            if begun_at >= call.horizon_at:
                fail(
                    run,
                    call,
                    NOT_LANDED,
                    "",
                    actor=SWEEPER,
                    look_again_at=next(_late_lookups(call, clock().now), None),
                    horizon_at=call.horizon_at.isoformat(),
                )
    pausepoints.reach(run.pk, f"call:{call.number}:resolved")


_LAST = {
    Receipt: ToolCall.LastLookup.FOUND,
    NotLanded: ToolCall.LastLookup.NOT_FOUND,
    Unknown: ToolCall.LastLookup.NO_ANSWER,
}


def ask_again(call_id: str) -> None:
    """Somebody wants another look-up now. Raises WrongState if the call is not in doubt."""
    with transaction.atomic(durable=True):
        call = lock_call(call_id)[1]
        _must_be_in_doubt(call)
        save(call, next_lookup_at=clock().now, lookups=0)


def answer(call_id: str, *, by: Any, answer: str, evidence: str) -> None:
    """A person says what became of the call. Raises BadInput or WrongState.

    Truth wins over their word: what did not happen is looked for as it was before.
    """
    if answer not in ANSWERS:
        raise BadInput(_("Choose one of the answers."), field="answer")
    with transaction.atomic(durable=True):
        run, call = lock_call(call_id)
        _must_be_in_doubt(call)
        data = {"answer": answer, "evidence": evidence[:2000]}
        record(run, "call.answered", actor=person(by), call=call, **data)
        if answer == "happened":
            receipt = Receipt({"answered_by": person(by)} | data, _("It happened."))
            land(run, call, receipt, actor=person(by), by="answer")
        elif answer == "did_not_happen":
            again = call.next_lookup_at
            fail(run, call, ANSWERED_NOT_LANDED, evidence, actor=person(by), look_again_at=again)


def expire_call(call_id: str) -> bool:
    """A call in flight without a report at its deadline, or at the drain's, is in doubt."""
    with transaction.atomic(durable=True):
        locked = lock_call_if_free(call_id)
        if locked is None:
            return False
        run, call = locked
        now = clock().now
        drain_deadline = None if call.outlasts_drain else run.drain_deadline
        deadlines = [d for d in (call.deadline_at, drain_deadline) if d is not None]
        if call.state != "in_flight" or not deadlines or min(deadlines) > now:
            return False
        doubt(run, call, NO_REPORT, "", actor=SWEEPER)
        return True


def _next_lookup(call: ToolCall, now: datetime, lookups: int) -> datetime | None:
    """After the look-up that begins now: up to the horizon, then while it is in doubt still, with
    growing pauses; and a few times after that.
    """
    assert call.horizon_at is not None
    soon = now + timedelta(seconds=min(LONGEST_PAUSE, 2 ** min(lookups, LONGEST_PAUSE)))
    if now < call.horizon_at:
        return min(soon, call.horizon_at)
    late = next(_late_lookups(call, now), None)
    if call.state == "in_doubt" and (late or lookups < LOOKUP_LIMIT):
        return min(soon, late or soon)
    return late


def _late_lookups(call: ToolCall, now: datetime) -> Iterator[datetime]:
    """Those that are still to come; none where the outside can promise that nothing comes."""
    assert call.doubted_at is not None and call.horizon_at is not None  # noqa: PT018
    horizon = call.horizon_at - call.doubted_at
    return (at for n in LATE_LOOKUPS if (at := call.doubted_at + n * horizon) > now)


def _must_be_in_doubt(call: ToolCall) -> None:
    if call.state != "in_doubt":
        raise WrongState(_("This is not in doubt any more."), state=call.state)
