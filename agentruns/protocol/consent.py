"""Consent: a person's word on one exact call (protocol I12), or that of several people.

Guarantees that consent is bound to the digest of the arguments that were shown, has an expiry,
is given once as many different people have agreed as the tool's policy demands, or refused by
one, and only while the run may still act. The gate uses it up.
Called under the run's lock; by the review app in the transaction that keeps the decision.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from agentruns.errors import WrongState
from agentruns.models import LedgerEvent, Run, ToolCall
from agentruns.models.shown import Sets, merged
from agentruns.protocol.advance import advance
from agentruns.protocol.ledger import (
    DRIVER,
    SWEEPER,
    clock,
    lock_call_if_free,
    move_call,
    person,
    person_id,
    record,
    save,
)
from agentruns.states import CALL
from tools.contract import Tier
from tools.policy import Policy, effective

DUPLICATE = "duplicate"  # why it asks, where it is not for its tool's policy
AGREED = ("call.approval_given", "call.approved")


def ask(run: Run, call: ToolCall, *, approvals: int = 1, is_double: bool = False) -> None:
    """Have the call wait for so many people, until its approval runs out. `is_double`: the same
    effect stands in the thread already.
    """
    expires = _from_now()
    data = {"digest": call.args_digest, "expires_at": expires.isoformat(), "needed": approvals}
    move_call(
        run,
        call,
        "ask",
        actor=DRIVER,
        data=data | ({"reason": DUPLICATE} if is_double else {}),
        reason=DUPLICATE if is_double else "",
        consent_expires_at=expires,
        consents_needed=approvals,
    )


def _from_now() -> datetime:
    """When a question, or an answer to it, runs out."""
    return clock().now + timedelta(seconds=settings.APPROVAL_TTL)


def rules_of(call: ToolCall) -> Policy:
    """What the tool may do now with this call's arguments, at the stricter of then and now."""
    return effective(call.tool, proposed_tier=Tier(call.tier), args=call.args)


def needed(call: ToolCall, policy: Policy) -> int:
    """How many people have to agree if anybody is asked: the stricter of then and now."""
    return max(1, call.consents_needed, policy.approvals)


def approve(run: Run, call: ToolCall, *, by: Any, digest: str, sets: Sets | None = None) -> None:
    """One person agrees to exactly the arguments of `digest`; when enough have, the call goes,
    once, and as long from now as there was to decide. `sets`: of the row that keeps the decision.
    Raises WrongState, also for somebody who has
    agreed already.
    """
    _must_be_open(call)
    if digest != call.args_digest:
        raise WrongState(_("The call has changed since you saw it. Look at it again."))
    policy = rules_of(call)
    said = voices(call, policy)
    if person(by) in said:
        raise WrongState(_("You have approved this already. It waits for somebody else."))
    count, of = len(said) + 1, needed(call, policy)
    data = {"digest": digest, "given": count, "needed": of}
    if count < of:
        sets = merged(save(call, consent_count=count, consents_needed=of), sets or {})
        record(run, "call.approval_given", actor=person(by), call=call, sets=sets, **data)
        return
    expires = _from_now()
    move_call(
        run,
        call,
        "approve",
        actor=person(by),
        data=data | {"expires_at": expires.isoformat()},
        sets=sets,
        reason="",
        consent_expires_at=expires,
        consent_digest=digest,
        consent_by=by,
        consent_count=count,
        consents_needed=of,
    )
    advance(run)


def voices(call: ToolCall, policy: Policy) -> set[str]:
    """Who has agreed so far, as actors, of those whose word counts now: they are active, and where
    a group has the say, in it.
    """
    agreed = LedgerEvent.objects.filter(call=call, kind__in=AGREED, data__has_key="digest")
    actors = set(agreed.values_list("actor", flat=True))
    if not actors:
        return actors
    people = User.objects.filter(is_active=True, pk__in=filter(None, map(person_id, actors)))
    if policy.approver_group is not None:
        people = people.filter(groups=policy.approver_group)
    return {person(each) for each in people}


def tighten(run: Run, call: ToolCall, policy: Policy, *, actor: str) -> bool:
    """An admin has changed the rules while the call waits: whether it takes more than it did."""
    of, count = needed(call, policy), len(voices(call, policy))
    if (of, count) == (max(1, call.consents_needed), call.consent_count):
        return False
    sets = save(call, consents_needed=of, consent_count=count)
    about = {"given": count, "needed": of}
    record(run, "call.approvals_raised", actor=actor, call=call, sets=sets, **about)
    return True


def reject(run: Run, call: ToolCall, *, by: Any, reason: str, sets: Sets | None = None) -> None:
    """Refuse the call; the model is told so, and why. `sets`: of the row that keeps the decision.
    Raises WrongState.
    """
    _must_be_open(call)
    move_call(
        run,
        call,
        "reject",
        actor=person(by),
        data={"reason": reason},
        sets=sets,
        reason="rejected",
        detail=reason,
        ended_at=clock().now,
    )
    advance(run)


def expire_consent(call_id: str) -> bool:
    """Close a question that nobody answered in time."""
    with transaction.atomic(durable=True):
        locked = lock_call_if_free(call_id)
        if locked is None:
            return False
        run, call = locked
        now = clock().now
        if call.state != "awaiting_approval" or not _is_over(call, now):
            return False
        move_call(run, call, "expire", actor=SWEEPER, reason="expired", ended_at=now)
        advance(run)
        return True


def _must_be_open(call: ToolCall) -> None:
    if call.state != "awaiting_approval":
        raise WrongState(
            _("This can no longer be decided: it is %(state)s.")
            % {"state": CALL.states[call.state].label},
            state=call.state,
            reason=call.reason,
        )
    if _is_over(call, clock().now):
        raise WrongState(_("The time to decide this has run out."), state="expired")


def _is_over(call: ToolCall, now: Any) -> bool:
    return call.consent_expires_at is not None and call.consent_expires_at <= now
