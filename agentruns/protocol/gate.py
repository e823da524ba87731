"""The commit gate: the one door to the world (protocol §5).

Guarantees that an effect starts only for a running run, in its epoch, under a living grant that
covers it, with a tool that is enabled, with consent where consent is needed, claimed by exactly
one executor, and never as the unconfirmed double of an effect that already landed in the thread.
The database's own trigger refuses the rest (models/call.py).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from agentruns import pausepoints
from agentruns.models import Grant, Run, ToolCall
from agentruns.protocol.advance import READY, advance, is_duplicate, is_next, open_calls
from agentruns.protocol.ledger import EXECUTOR, clock, lock_call, move_call, record, save
from tools.contract import Draft, Tier
from tools.policy import Policy, effective

REPORT_GRACE = timedelta(seconds=2)  # for a call that used its whole time to say so


@dataclass(frozen=True)
class Claim:
    """One executor's right to one call. Outcomes are keyed by `token`."""

    call_id: str
    token: str
    timeout: float


@dataclass(frozen=True)
class Attempt:
    """Everything the gate's checks look at, read under the run's lock."""

    run: Run
    call: ToolCall
    claim: Claim
    policy: Policy
    now: datetime


def claim_call(call_id: str, *, epoch: int) -> Claim | None:
    """Claim a call whose turn has come; None if there is nothing to do or somebody has it.

    A message that arrives twice finds the claim taken; one that outlived its epoch finds that.
    """
    with transaction.atomic(durable=True):
        run, call = lock_call(call_id)
        now = clock().now
        if run.status != "running" or run.epoch != epoch or call.state not in READY:
            return None
        if call.claim_expires_at is not None and call.claim_expires_at > now:
            return None
        if not is_next(call, open_calls(run)):
            return None
        token = secrets.token_hex(16)
        expires = now + timedelta(seconds=settings.CLAIM_TTL)
        save(call, claim_token=token, claim_expires_at=expires)
        return Claim(call.pk, token, effective(call.tool).timeout)


def keep_draft(claim: Claim, draft: Draft) -> bool:
    """Record what `prepare` drafted; False if the call is no longer ours to send.

    A draft that an executor left when it died is on record already.
    """
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token != claim.token or call.state not in READY:
            return False
        if call.state == "approved":
            move_call(run, call, "prepare", actor=EXECUTOR, draft=draft.data)
    pausepoints.reach(run.pk, f"call:{call.number}:prepared")
    return True


def pass_gate(claim: Claim) -> bool:
    """Let the call out, or refuse it for a reason that is recorded. Called before each attempt."""
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        policy = effective(call.tool, proposed_tier=Tier(call.tier))
        attempt = Attempt(run, call, claim, policy, clock().now)
        reason = next((code for code, holds in CHECKS if not holds(attempt)), "")
        if reason:
            _refuse(attempt, reason)
        else:
            _let_through(attempt)
        number = call.number
    if not reason:
        pausepoints.reach(run.pk, f"call:{number}:gate")
    return not reason


def _refuse(attempt: Attempt, reason: str) -> None:
    run, call = attempt.run, attempt.call
    if call.state in READY and run.is_active and call.claim_token == attempt.claim.token:
        move_call(
            run,
            call,
            "deny",
            actor=EXECUTOR,
            data={"reason": reason},
            reason=reason,
            ended_at=attempt.now,
        )
        advance(run)
    else:
        # The row already says why it never started, or it is somebody else's to settle.
        record(run, "gate.refused", actor=EXECUTOR, call=call, reason=reason, state=call.state)


def _let_through(attempt: Attempt) -> None:
    call = attempt.call
    used = {"consent_used_at": attempt.now} if call.consent_digest else {}
    move_call(
        attempt.run,
        call,
        "pass_gate",
        actor=EXECUTOR,
        data={"tier": attempt.policy.tier, "epoch": attempt.run.epoch},
        gate_passed_at=attempt.now,
        deadline_at=attempt.now + timedelta(seconds=attempt.policy.timeout) + REPORT_GRACE,
        **used,
    )


def _is_ours(a: Attempt) -> bool:
    return a.call.claim_token == a.claim.token and a.call.state in READY


def _grant_covers(a: Attempt) -> bool:
    grant = Grant.objects.filter(run=a.run, revoked_at=None).first()
    return grant is not None and a.call.tool in grant.tools and a.policy.tier in grant.tiers


def _has_consent(a: Attempt) -> bool:
    return not a.policy.needs_approval or _consent_holds(a)


def _is_confirmed(a: Attempt) -> bool:
    return not is_duplicate(a.run, a.call) or _consent_holds(a)


def _consent_holds(a: Attempt) -> bool:
    call = a.call
    return (
        call.consent_digest == call.args_digest != ""
        and call.consent_used_at is None
        and call.consent_expires_at is not None
        and call.consent_expires_at > a.now
    )


# In the order of protocol §5; the first that does not hold is the reason.
CHECKS: list[tuple[str, Callable[[Attempt], bool]]] = [
    ("run_not_running", lambda a: a.run.status == "running"),
    ("old_epoch", lambda a: a.run.epoch == a.call.epoch),
    ("claim_lost", _is_ours),
    ("unknown_tool", lambda a: a.policy.known),
    ("grant_does_not_cover", _grant_covers),
    ("tool_disabled", lambda a: a.policy.enabled),
    ("needs_consent", _has_consent),
    ("duplicate", _is_confirmed),
]
