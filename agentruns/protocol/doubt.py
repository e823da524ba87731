"""Doubt: find out what became of a call, and never send it again (protocol §8).

Guarantees that a call in doubt is looked up with growing pauses, a bounded number of times; that
"nothing is there" is not believed while a slow system may still act on what it was sent; that
what cannot be looked up waits for a person; and that the person's answer is kept with a name.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import pausepoints
from agentruns.errors import BadInput, WrongState
from agentruns.models import Run, ToolCall
from agentruns.protocol import items
from agentruns.protocol.ledger import SWEEPER, clock, lock_call, person, record, save
from agentruns.protocol.outcome import doubt, fail, land
from tools.contract import LookupResult, NotLanded, Receipt

LOOKUP_LIMIT = 6
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
        elif isinstance(found, NotLanded) and call.state == "in_doubt":
            _take_for_not_landed(run, call)
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
    """A call in flight without a report at its deadline is in doubt.

    The drain deadline is one too, but not for what Stop waits for: a call that cannot be
    interrupted, or a step of an atomic unit.
    """
    with transaction.atomic(durable=True):
        run, call = lock_call(call_id)
        now = clock().now
        is_awaited = call.is_uninterruptible or call.unit != ""
        drain_deadline = None if is_awaited else run.drain_deadline
        deadlines = [d for d in (call.deadline_at, drain_deadline) if d is not None]
        if call.state != "in_flight" or not deadlines or min(deadlines) > now:
            return False
        doubt(run, call, "no_report", "", actor=SWEEPER)
        return True


def _take_for_not_landed(run: Run, call: ToolCall) -> None:
    """Believe it, once the outside had its time; else ask again when it will have had it."""
    assert call.doubted_at is not None
    settled_at = call.doubted_at + timedelta(seconds=settings.LOOKUP_PATIENCE)
    if clock().now >= settled_at:
        fail(run, call, "not_landed", "", actor=SWEEPER)
    else:
        save(call, next_lookup_at=settled_at)


def _must_be_in_doubt(call: ToolCall) -> None:
    if call.state != "in_doubt":
        raise WrongState(_("This is not in doubt any more."), state=call.state)
