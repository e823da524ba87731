"""Consent: a person's word on one exact call (protocol I12).

Guarantees that consent is bound to the digest of the arguments that were shown, has an expiry,
is given or refused once, and only while the run may still act. The gate uses it up.
Called by the review app under the run's lock, in the transaction that keeps the decision.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from agentruns.errors import WrongState
from agentruns.models import Run, ToolCall
from agentruns.protocol.advance import advance
from agentruns.protocol.ledger import DRIVER, SWEEPER, clock, lock_call_if_free, move_call, person
from agentruns.states import CALL


def ask(run: Run, call: ToolCall) -> None:
    """Have the call wait for a person, until its approval runs out."""
    expires = clock().now + timedelta(seconds=settings.APPROVAL_TTL)
    move_call(
        run,
        call,
        "ask",
        actor=DRIVER,
        data={"digest": call.args_digest, "expires_at": expires.isoformat()},
        consent_expires_at=expires,
    )


def approve(run: Run, call: ToolCall, *, by: Any, digest: str) -> None:
    """Let the call go, once, with exactly the arguments of `digest`. Raises WrongState."""
    _must_be_open(call)
    if digest != call.args_digest:
        raise WrongState(_("The call has changed since you saw it. Look at it again."))
    move_call(
        run,
        call,
        "approve",
        actor=person(by),
        data={"digest": digest},
        consent_digest=digest,
        consent_by=by,
    )
    advance(run)


def reject(run: Run, call: ToolCall, *, by: Any, reason: str) -> None:
    """Refuse the call; the model is told so, and why. Raises WrongState."""
    _must_be_open(call)
    move_call(
        run,
        call,
        "reject",
        actor=person(by),
        data={"reason": reason},
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
