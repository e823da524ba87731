"""The commit gate: the one door to the world (protocol §5).

Guarantees that an effect starts only for a running run, in its epoch, under a living grant that
covers it, with a tool that is enabled and still what it was when the call was written, within its
budget, with consent where consent is needed, claimed by exactly one executor, and never as the
unconfirmed double of an effect that already landed in the thread, or may have. The one exception:
an atomic unit that had begun is finished (units.py).
Each attempt passes anew. A call whose run is held (paused, or out of its budget) is not refused,
nor is one of a tool that has had its calls of this hour: it waits. The database's own trigger
refuses the rest (models/call.py).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from pydantic import BaseModel

from agentruns import doorbell, pausepoints
from agentruns.models import Run, Terms, ToolCall
from agentruns.protocol import checkpoints, items, units
from agentruns.protocol.advance import HELD, advance, is_next
from agentruns.protocol.budget import allows, enforce_budget
from agentruns.protocol.consent import needed, voices
from agentruns.protocol.drain import settle
from agentruns.protocol.fair import share_of
from agentruns.protocol.heads import CUT_BACK
from agentruns.protocol.ledger import (
    EXECUTOR,
    clock,
    lock_call,
    move_call,
    record,
    report_by,
    save,
)
from agentruns.protocol.rate import room_at
from agentruns.protocol.sight import Sight, look
from agentruns.states import READY
from tools import registry
from tools.contract import Draft, Tier
from tools.digest import args_digest
from tools.errors import BadArguments
from tools.policy import Policy, combined

BUDGET_EXHAUSTED = "budget_exhausted"
RATE_LIMITED = "rate_limited"
TOOL_CHANGED = "tool_changed"
ARGS_CHANGED = "args_changed"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Claim:
    """One executor's right to one call. Outcomes are keyed by `token`."""

    call_id: str
    token: str
    timeout: float


@dataclass(frozen=True)
class Taken:
    """A call that an executor has claimed. `has_passed`: what the gate said in the same
    transaction; None if something comes before the gate is asked. `args`, once it has passed: read
    before the gate was asked, so that nothing is left to do but to send.
    """

    claim: Claim
    call: ToolCall
    has_passed: bool | None
    args: BaseModel | None = None


@dataclass(frozen=True)
class Attempt:
    """Everything the gate's checks look at, read under the run's lock.

    `finishes`: it is the next step of a unit that had begun when the run was stopped. `args`: the
    arguments as they are sent if it passes, where they have been read.
    """

    sight: Sight
    claim: Claim
    policy: Policy
    finishes: bool
    args: BaseModel | None

    @property
    def run(self) -> Run:
        return self.sight.run

    @property
    def call(self) -> ToolCall:
        return self.sight.call

    @property
    def now(self) -> datetime:
        return self.sight.now


def take_call(call_id: str, *, epoch: int) -> Taken | None:
    """Claim a call whose turn has come, and where nothing is to be prepared, pass the gate at
    once, in the same transaction; None if there is nothing to do or somebody has it.

    A message that arrives twice finds the claim taken; one that outlived its epoch finds that.
    """
    with transaction.atomic(durable=True):
        sight = look(call_id, at_gate=True)
        claim = _claimed(sight, epoch)
        if claim is None:
            return None
        args = args_to_send(sight.call)
        if args is None and registry.get(sight.call.tool) is not None:
            _keep_claim(sight.call)
            return Taken(claim, sight.call, None)
        reason = _ask(sight, claim, args)
    _go_on_after(sight, reason)
    return Taken(claim, sight.call, not reason, args)


def claim_call(call_id: str, *, epoch: int) -> Claim | None:
    """The same without the gate, which is asked later (`pass_gate`)."""
    with transaction.atomic(durable=True):
        sight = look(call_id)
        claim = _claimed(sight, epoch)
        if claim is not None:
            _keep_claim(sight.call)
        return claim


def args_to_send(call: ToolCall) -> BaseModel | None:
    """The arguments, if nothing comes between the claim and the gate; None if a draft is to be
    made, or it is to be said that the tool does not understand them any more, or is unknown here.
    """
    registered = registry.get(call.tool)
    if registered is None or registered.has_prepare:
        return None
    try:
        args = call.arguments(registered)
        registered.item_keys(args)
    except Exception:  # noqa: BLE001  (the executor meets it again, and records it)
        return None
    return args


def _claimed(sight: Sight, epoch: int) -> Claim | None:
    """A claim, in memory so far, if the call may be claimed now."""
    call, now = sight.call, sight.now
    if call.state not in READY or not _has_its_turn(sight, epoch):
        return None
    if any(at is not None and at > now for at in (call.claim_expires_at, call.next_attempt_at)):
        return None
    # What may only be finished is finished, whoever else waits.
    may_wait = sight.run.status == "running" and call.unit_step <= 1
    if may_wait and sight.places >= share_of(settings.ACT_PLACES):
        return None
    call.claim_token = secrets.token_hex(16)
    call.claim_expires_at = now + timedelta(seconds=settings.CLAIM_TTL)
    return Claim(call.pk, call.claim_token, policy_of(sight).timeout)


def policy_of(sight: Sight) -> Policy:
    """What the call's tool may do now: by its row, its code, the arguments, and the tier when
    proposed.
    """
    call = sight.call
    return combined(call.tool, sight.tool, proposed_tier=Tier(call.tier), args=call.args)


def _keep_claim(call: ToolCall) -> None:
    save(call, claim_token=call.claim_token, claim_expires_at=call.claim_expires_at)


def _has_its_turn(sight: Sight, epoch: int) -> bool:
    run, call, calls = sight.run, sight.call, sight.open_calls
    if run.status == "running" and run.epoch == epoch:
        return is_next(call, calls) and not units.waits_for_mate(call, calls)
    return call.epoch == epoch and units.may_finish(run, call)


def keep_draft(claim: Claim, draft: Draft) -> bool:
    """Record what `prepare` drafted; False if the call is no longer ours to send, or not yet to
    be sent by anybody.

    A draft that an executor left when it died is on record already.
    """
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token != claim.token or call.state not in READY:
            return False
        if call.state == "approved":
            _keep(run, call, draft)
        elif call.draft is None:  # it was set aside while the call waited
            sets = save(call, draft=draft.data)
            record(run, "call.drafted_again", actor=EXECUTOR, call=call, sets=sets)
    pausepoints.reach(run.pk, f"call:{call.number}:prepared")
    return call.claim_token == claim.token


def _keep(run: Run, call: ToolCall, draft: Draft) -> None:
    """A draft that is held back waits without an executor; until then it is Stop's to drop."""
    if not draft.hold:
        move_call(run, call, "prepare", actor=EXECUTOR, draft=draft.data)
        return
    due = clock().now + timedelta(seconds=draft.hold)
    free = {"claim_token": "", "claim_expires_at": None, "next_attempt_at": due}
    data = {"held_until": due.isoformat()}
    move_call(run, call, "prepare", actor=EXECUTOR, data=data, draft=draft.data, **free)
    doorbell.ring_task("agentruns.tasks.act", call.pk, call.epoch, after=draft.hold)


def pass_gate(claim: Claim, args: BaseModel | None = None) -> bool:
    """Let the call out, or refuse it for a reason that is recorded. Called before each attempt.
    `args`: what is sent if it passes, where that was read before.
    """
    with transaction.atomic(durable=True):
        sight = look(claim.call_id, at_gate=True)
        reason = _ask(sight, claim, args)
    _go_on_after(sight, reason)
    return not reason


def _ask(sight: Sight, claim: Claim, args: BaseModel | None) -> str:
    """The gate's answer, on record when this returns: "", or the reason why not."""
    call = sight.call
    attempt = Attempt(sight, claim, policy_of(sight), units.may_finish(sight.run, call), args)
    reason = next((code for code, holds in CHECKS if not holds(attempt)), "")
    if reason:
        _refuse(attempt, reason)
    else:
        _let_through(attempt)
    return reason


def _go_on_after(sight: Sight, reason: str) -> None:
    if reason == BUDGET_EXHAUSTED:
        enforce_budget(sight.run.pk)
    elif not reason:
        pausepoints.reach(sight.run.pk, f"call:{sight.call.number}:gate")


def _refuse(attempt: Attempt, reason: str) -> None:
    run, call = attempt.run, attempt.call
    may_be_denied = _is_ours(attempt) and (run.is_active or attempt.finishes)
    if may_be_denied and reason == RATE_LIMITED:
        _have_it_wait(attempt)
        return
    if may_be_denied and not _is_held(attempt, reason):
        deny(run, call, reason, actor=EXECUTOR, now=attempt.now)
        settle(run)
        advance(run)
        return
    if may_be_denied:  # it waits, for whoever comes when the run is let go
        save(call, claim_token="", claim_expires_at=None)
    # Else the row already says why it never started, or it is somebody else's to settle.
    why = run.suspended_reason or reason
    record(run, "gate.refused", actor=EXECUTOR, call=call, reason=why, state=call.state)


def deny(run: Run, call: ToolCall, reason: str, *, actor: str, now: datetime) -> None:
    """Under the run's lock: it is not let out, nor are the steps that depend on it."""
    data = {"reason": reason}
    items.end(run, call, "deny", actor=actor, reason=reason, data=data, ended_at=now)
    units.break_up(run, call)


def _have_it_wait(attempt: Attempt) -> None:
    """It comes again when its tool has room, and asks the gate again. A draft stays as it is."""
    run, call = attempt.run, attempt.call
    due = _room_at(attempt) or attempt.now
    data = {"reason": RATE_LIMITED, "next_attempt_at": due.isoformat()}
    fields = {"reason": RATE_LIMITED, "next_attempt_at": due}
    unclaimed = {"claim_token": "", "claim_expires_at": None}
    if call.state == "approved":
        move_call(run, call, "postpone", actor=EXECUTOR, data=data, **fields, **unclaimed)
    else:
        sets = save(call, **fields, **unclaimed)
        record(run, "call.held_up", actor=EXECUTOR, call=call, sets=sets, **data)


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
    about: dict[str, Any] = {"tier": attempt.policy.tier, "epoch": run.epoch}
    if attempt.finishes:
        about["finishes_unit"] = call.unit
    if used:
        about["approvals"] = needed(call, attempt.policy)
    move_call(
        run,
        call,
        "pass_gate",
        actor=EXECUTOR,
        data=about,
        claim_token=call.claim_token,
        claim_expires_at=call.claim_expires_at,
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
    grant = units.grant_of(a.run) if a.finishes else a.sight.grant
    return grant is not None and a.call.tool in grant.tools and a.policy.tier in grant.tiers


def _has_whole_ledger(a: Attempt) -> bool:
    """A call that had gone out already may be among what was cut off."""
    if not a.sight.is_whole:
        log.error("ledger.cut_back", run_id=a.run.pk, call_id=a.call.pk)
    return a.sight.is_whole


def is_as_proposed(call: ToolCall, policy: Policy) -> bool:
    """Whether an imported tool is what it was when the call was written: what changes is another
    tool, to which nobody has agreed.
    """
    return policy.revision in ("", call.tool_revision)


def _sends_what_was_proposed(a: Attempt) -> bool:
    """Whether what is sent has the digest that the call was written with: the row may have been
    changed since, by somebody who has the database.
    """
    registered = registry.get(a.call.tool)
    try:
        args = a.call.arguments(registered) if a.args is None and registered else a.args
    except BadArguments:
        args = None
    if args is not None and args_digest(args) == a.call.args_digest:
        return True
    log.error("call.args_changed", run_id=a.run.pk, call_id=a.call.pk)
    return False


def refusal(sight: Sight) -> str:
    """Why the call cannot go, whoever agrees to it: so nobody is asked about it. "" if it may."""
    call, grant, policy = sight.call, sight.grant, policy_of(sight)
    if grant is None or call.tool not in grant.tools or policy.tier not in grant.tiers:
        return "grant_does_not_cover"
    if not is_as_proposed(call, policy):
        return TOOL_CHANGED
    return "" if policy.enabled else "tool_disabled"


def has_consent(call: ToolCall, policy: Policy, now: datetime) -> bool:
    """Whoever was asked has the last word, also where nobody would be asked any more (I12)."""
    is_asked = policy.needs_approval or call.consent_digest != ""
    return not is_asked or _consent_holds(call, policy, now)


def _consent_holds(call: ToolCall, policy: Policy, now: datetime) -> bool:
    return (
        call.consent_digest == call.args_digest != ""
        and _agreed(call, policy) >= needed(call, policy)
        and call.consent_used_at is None
        and call.consent_expires_at is not None
        and call.consent_expires_at > now
    )


def _agreed(call: ToolCall, policy: Policy) -> int:
    """How many have agreed, of those whose word counts now."""
    return min(call.consent_count, len(voices(call, policy)))


def _is_confirmed(a: Attempt) -> bool:
    return not a.sight.is_double or _consent_holds(a.call, a.policy, a.now)


def _is_within_budget(a: Attempt) -> bool:
    """A unit that has begun is finished, whatever it costs."""
    has_begun = a.call.unit_step > 1
    return has_begun or allows(a.run, a.policy.tier, a.now)


def _room_at(a: Attempt) -> datetime | None:
    """When there is room for the call; None if there is now. As to its budget, a unit that has
    begun is finished.
    """
    if a.policy.rate_limit is None or a.call.unit_step > 1:
        return None
    return room_at(a.call.tool, a.policy.rate_limit)


# In the order of protocol §5; the first that does not hold is the reason.
CHECKS: list[tuple[str, Callable[[Attempt], bool]]] = [
    ("run_not_running", lambda a: a.run.status == "running" or a.finishes),
    ("old_epoch", lambda a: a.run.epoch == a.call.epoch or a.finishes),
    ("claim_lost", _is_ours),
    (CUT_BACK, _has_whole_ledger),
    ("owner_deactivated", lambda a: a.run.owner.is_active),
    ("unknown_tool", lambda a: a.policy.known),
    ("grant_does_not_cover", _grant_covers),
    (TOOL_CHANGED, lambda a: is_as_proposed(a.call, a.policy)),
    (ARGS_CHANGED, _sends_what_was_proposed),
    ("tool_disabled", lambda a: a.policy.enabled),
    ("needs_consent", lambda a: has_consent(a.call, a.policy, a.now)),
    (BUDGET_EXHAUSTED, _is_within_budget),
    ("duplicate", _is_confirmed),
    ("unit_incomplete", lambda a: units.is_whole(a.call)),
    # The last: what will be denied does not wait.
    (RATE_LIMITED, lambda a: _room_at(a) is None),
]
