"""The commit gate: the one door to the world (protocol §5).

Guarantees that an effect starts only for a running run, in its epoch, under a living grant that
covers it, with a tool that is enabled, within its budget, with consent where consent is needed,
claimed by exactly one executor, and never as the unconfirmed double of an effect that already
landed in the thread. The one exception: an atomic unit that had begun is finished (units.py).
Each attempt passes anew. A call whose run is held (paused, or out of its budget) is not refused:
it waits. The database's own trigger refuses the rest (models/call.py).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from agentruns import pausepoints
from agentruns.models import Grant, Run, Terms, ToolCall
from agentruns.protocol import checkpoints, items, units
from agentruns.protocol.advance import HELD, advance, is_duplicate, is_next, open_calls
from agentruns.protocol.budget import allows, enforce_budget
from agentruns.protocol.drain import settle
from agentruns.protocol.ledger import (
    EXECUTOR,
    clock,
    lock_call,
    move_call,
    record,
    report_by,
    save,
)
from agentruns.states import READY
from tools.contract import Draft, Tier
from tools.policy import Policy, effective

BUDGET_EXHAUSTED = "budget_exhausted"


@dataclass(frozen=True)
class Claim:
    """One executor's right to one call. Outcomes are keyed by `token`."""

    call_id: str
    token: str
    timeout: float


@dataclass(frozen=True)
class Attempt:
    """Everything the gate's checks look at, read under the run's lock.

    `finishes`: it is the next step of a unit that had begun when the run was stopped.
    """

    run: Run
    call: ToolCall
    claim: Claim
    policy: Policy
    now: datetime
    finishes: bool


def claim_call(call_id: str, *, epoch: int) -> Claim | None:
    """Claim a call whose turn has come; None if there is nothing to do or somebody has it.

    A message that arrives twice finds the claim taken; one that outlived its epoch finds that.
    """
    with transaction.atomic(durable=True):
        run, call = lock_call(call_id)
        now = clock().now
        if call.state not in READY or not _has_its_turn(run, call, epoch):
            return None
        if any(at is not None and at > now for at in (call.claim_expires_at, call.next_attempt_at)):
            return None
        token = secrets.token_hex(16)
        expires = now + timedelta(seconds=settings.CLAIM_TTL)
        save(call, claim_token=token, claim_expires_at=expires)
        return Claim(call.pk, token, effective(call.tool).timeout)


def _has_its_turn(run: Run, call: ToolCall, epoch: int) -> bool:
    if run.status == "running" and run.epoch == epoch:
        calls = open_calls(run)
        return is_next(call, calls) and not units.waits_for_mate(call, calls)
    return call.epoch == epoch and units.may_finish(run, call)


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
        finishes = units.may_finish(run, call)
        attempt = Attempt(run, call, claim, policy, clock().now, finishes)
        reason = next((code for code, holds in CHECKS if not holds(attempt)), "")
        if reason:
            _refuse(attempt, reason)
        else:
            _let_through(attempt)
        number = call.number
    if reason == BUDGET_EXHAUSTED:
        enforce_budget(run.pk)
    elif not reason:
        pausepoints.reach(run.pk, f"call:{number}:gate")
    return not reason


def _refuse(attempt: Attempt, reason: str) -> None:
    run, call = attempt.run, attempt.call
    may_be_denied = _is_ours(attempt) and (run.is_active or attempt.finishes)
    if may_be_denied and not _is_held(attempt, reason):
        items.end(
            run,
            call,
            "deny",
            actor=EXECUTOR,
            reason=reason,
            data={"reason": reason},
            ended_at=attempt.now,
        )
        units.break_up(run, call)
        settle(run)
        advance(run)
        return
    if may_be_denied:  # it waits, for whoever comes when the run is let go
        save(call, claim_token="", claim_expires_at=None)
    # Else the row already says why it never started, or it is somebody else's to settle.
    why = run.suspended_reason or reason
    record(run, "gate.refused", actor=EXECUTOR, call=call, reason=why, state=call.state)


def _is_held(attempt: Attempt, reason: str) -> bool:
    """Whether the run does nothing for now, by a decision that will be taken back or followed by
    a stop.
    """
    run = attempt.run
    if reason == BUDGET_EXHAUSTED:
        return run.on_limit != Terms.OnLimit.DEGRADE
    return reason == "run_not_running" and run.suspended_reason in HELD


def _let_through(attempt: Attempt) -> None:
    run, call, now = attempt.run, attempt.call, attempt.now
    checkpoints.before_call(run, call, attempt.policy.tier, now)
    used = {"consent_used_at": now} if call.consent_digest else {}
    finishes = {"finishes_unit": call.unit} if attempt.finishes else {}
    move_call(
        run,
        call,
        "pass_gate",
        actor=EXECUTOR,
        data={"tier": attempt.policy.tier, "epoch": run.epoch, **finishes},
        gate_passed_at=now,
        deadline_at=report_by(now, attempt.policy.timeout),
        next_attempt_at=None,
        reason="",
        detail="",
        **used,
    )


def _is_ours(a: Attempt) -> bool:
    return a.call.claim_token == a.claim.token and a.call.state in READY


def _grant_covers(a: Attempt) -> bool:
    grant = (
        units.grant_of(a.run)
        if a.finishes
        else Grant.objects.filter(run=a.run, revoked_at=None).first()
    )
    return grant is not None and a.call.tool in grant.tools and a.policy.tier in grant.tiers


def _has_consent(a: Attempt) -> bool:
    """Whoever was asked has the last word, also where nobody would be asked any more (I12)."""
    return not (a.policy.needs_approval or a.call.consent_digest) or _consent_holds(a)


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


def _is_within_budget(a: Attempt) -> bool:
    """A unit that has begun is finished, whatever it costs."""
    has_begun = a.call.unit_step > 1
    return has_begun or allows(a.run, a.policy.tier, a.now)


# In the order of protocol §5; the first that does not hold is the reason.
CHECKS: list[tuple[str, Callable[[Attempt], bool]]] = [
    ("run_not_running", lambda a: a.run.status == "running" or a.finishes),
    ("old_epoch", lambda a: a.run.epoch == a.call.epoch or a.finishes),
    ("claim_lost", _is_ours),
    ("unknown_tool", lambda a: a.policy.known),
    ("grant_does_not_cover", _grant_covers),
    ("tool_disabled", lambda a: a.policy.enabled),
    ("needs_consent", _has_consent),
    (BUDGET_EXHAUSTED, _is_within_budget),
    ("duplicate", _is_confirmed),
    ("unit_incomplete", lambda a: units.is_whole(a.call)),
]
