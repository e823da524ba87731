"""Doubt: find out what became of a call, and never send it again (protocol §8).

Guarantees that a call in doubt is looked up with growing pauses, a bounded number of times; that
"nothing is there" is not believed while a slow system may still act on what it was sent; that
what cannot be looked up waits for a person; and that the person's answer is kept with a name.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
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
from agentruns.protocol.outcome import doubt, fail, land
from tools.contract import LookupResult, NotLanded, Receipt

LOOKUP_LIMIT = 6
NO_REPORT = "no_report"  # the reason of a doubt that nobody reported
ANSWERS = ("happened", "did_not_happen", "cannot_tell")


def begin_lookup(call_id: str) -> ToolCall | None:
    """Take the next look-up of a call in doubt; None if it is not due or not in doubt."""
    with transaction.atomic(durable=True):
        call = lock_call(call_id)[1]
        now = clock().now
        if call.state != "in_doubt" or call.next_lookup_at is None or call.next_lookup_at > now:
            return None
        lookups = call.lookups + 1
        again = now + timedelta(seconds=2**lookups) if lookups < LOOKUP_LIMIT else None
        if now < _settled_at(call):
            again = _settled_at(call)  # too early to believe that nothing is there
        save(call, lookups=lookups, next_lookup_at=again)
        return call


def record_lookup(call_id: str, found: LookupResult) -> None:
    """What the outside system said: a receipt, that there is nothing, or nothing to go by."""
    with transaction.atomic(durable=True):
        run, call = lock_call(call_id)
        found = items.understood(call, found)
        record(run, "call.looked_up", actor=SWEEPER, call=call, found=type(found).__name__)
        if isinstance(found, Receipt):
            land(run, call, found, actor=SWEEPER, by="lookup")
        elif isinstance(found, NotLanded) and call.state == "in_doubt" and _was_in_time(call):
            fail(run, call, "not_landed", "", actor=SWEEPER)
    pausepoints.reach(run.pk, f"call:{call.number}:resolved")


def ask_again(call_id: str) -> None:
    """Somebody wants another look-up now. Raises WrongState if the call is not in doubt."""
    with transaction.atomic(durable=True):
        call = lock_call(call_id)[1]
        _must_be_in_doubt(call)
        save(call, next_lookup_at=clock().now, lookups=0)


def answer(call_id: str, *, by: Any, answer: str, evidence: str) -> None:
    """A person says what became of the call. Raises BadInput or WrongState."""
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
            fail(run, call, "answered_not_landed", evidence, actor=person(by))


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


def _settled_at(call: ToolCall) -> datetime:
    """When nothing of the call can be under way any more: its executor has reported, or its own
    time is over (the drain's may be over before), and a slow system has had its time too.
    """
    assert call.doubted_at is not None
    assert call.deadline_at is not None
    is_reported = call.reason != NO_REPORT
    over_at = call.doubted_at if is_reported else max(call.doubted_at, call.deadline_at)
    return over_at + timedelta(seconds=settings.LOOKUP_PATIENCE)


def _was_in_time(call: ToolCall) -> bool:
    """Whether the look-up that answers now was begun once all was settled, not only recorded then:
    after one that came too early, the next is due at exactly that moment.
    """
    return call.next_lookup_at is None or call.next_lookup_at > _settled_at(call)


def _must_be_in_doubt(call: ToolCall) -> None:
    if call.state != "in_doubt":
        raise WrongState(_("This is not in doubt any more."), state=call.state)
