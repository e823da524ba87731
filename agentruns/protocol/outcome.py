"""Outcomes: what became of a call that passed the gate (protocol §4, §8).

Guarantees that an outcome is recorded however late it comes and whatever the epoch, keyed by the
claim; that `failed` means known to have had no effect; that what is tried again has passing
trouble, a bounded number of attempts, and its way through the gate each time; and that truth
wins over an answer.
"""

from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from agentruns import doorbell, pausepoints
from agentruns.models import Run, ToolCall
from agentruns.protocol import items, units
from agentruns.protocol.advance import advance
from agentruns.protocol.drain import settle
from agentruns.protocol.gate import Claim
from agentruns.protocol.ledger import EXECUTOR, clock, lock_call, move_call, record, save
from agentruns.protocol.sight import Sight, look
from agentruns.states import READY
from tools import registry
from tools.contract import Receipt, Tier
from tools.errors import NoEffect, Unclear

FIRST_LOOKUP_AFTER = timedelta(seconds=1)
ATTEMPT_LIMIT = 4
UNCLEAR = Unclear.code
NO_REPORT = "no_report"  # the reason of a doubt that nobody reported
LONGEST_PAUSE = 60.0  # seconds between two attempts

# An attempt that is over, and had no effect, leaves nothing behind: neither its claim, nor its
# time, nor the consent that it used. (Where that ran out meanwhile, the gate will say so.)
NOT_ATTEMPTED: dict[str, Any] = {
    "claim_token": "",
    "claim_expires_at": None,
    "gate_passed_at": None,
    "deadline_at": None,
    "consent_used_at": None,
    "draft": None,
}

log = structlog.get_logger(__name__)


def record_landed(claim: Claim, receipt: Receipt, **measured: Any) -> None:
    """The effect is in the world, with its receipt. `measured`: milliseconds, for the audit."""
    with transaction.atomic(durable=True):
        seen = look(claim.call_id)
        run, call = seen.run, seen.call
        if call.claim_token == claim.token:
            land(run, call, receipt, actor=EXECUTOR, seen=seen, **measured)
    pausepoints.reach(run.pk, f"call:{call.number}:landed")


def record_failed(claim: Claim, code: str, detail: str) -> None:
    """It is known that nothing (more) happened. Before the gate or after it."""
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token == claim.token:
            fail(run, call, code, detail, actor=EXECUTOR)
    pausepoints.reach(run.pk, f"call:{call.number}:failed")


def record_no_effect(claim: Claim, error: NoEffect) -> None:
    """The same, as a tool says it: passing trouble is tried again in a while."""
    if not error.is_passing:
        record_failed(claim, error.code, str(error))
        return
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token == claim.token:
            try_again(run, call, error.code, str(error), retry_after=error.retry_after)
    pausepoints.reach(run.pk, f"call:{call.number}:postponed")


def record_paused(claim: Claim) -> None:
    """It stopped between two items because its run is held: it goes on when the run does."""
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token == claim.token and call.state == "in_flight":
            if _may_still_act(run, call):
                data = {"reason": run.suspended_reason or "held_up"}
                move_call(run, call, "postpone", actor=EXECUTOR, data=data, **NOT_ATTEMPTED)
                go_on(run)  # it may have been let go meanwhile
            else:
                fail(run, call, "stopped", "", actor=EXECUTOR)
    pausepoints.reach(run.pk, f"call:{call.number}:postponed")


def record_doubt(claim: Claim, detail: str, *, code: str = "no_answer") -> None:
    """Nobody knows whether it happened: a time-out or a broken connection after the gate; or
    (`code` is UNCLEAR) an answer that decides nothing, which is the `detail`.
    """
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token == claim.token:
            doubt(run, call, code, detail, actor=EXECUTOR)
    pausepoints.reach(run.pk, f"call:{call.number}:doubted")


def land(
    run: Run,
    call: ToolCall,
    receipt: Receipt,
    *,
    actor: str,
    seen: Sight | None = None,
    look_again_at: datetime | None = None,
    **data: Any,
) -> None:
    """Under the run's lock: landed, from wherever the call was. `seen`: if all was read at once,
    it is not read again, for the sake of the many calls that simply land. `look_again_at`: when
    more of its items may be found.
    """
    now = seen.now if seen else clock().now
    known = len(items.receipts_of(call.pk)) if call.state == "landed" else 0
    receipt = items.completed(run, call, receipt, actor=actor)
    data |= items.progress(call)
    fields: dict[str, Any] = {"receipt": receipt.data, "response": receipt.response}
    # Why it was in doubt, or thought not to have happened, is said no more; the ledger keeps it.
    fields |= {"ended_at": now, "reason": "", "detail": "", "next_lookup_at": look_again_at}
    if call.state in ("in_flight", "in_doubt"):
        move_call(run, call, "land", actor=actor, data=data, **fields)
    elif call.state == "failed" and call.gate_passed_at and call.tier != Tier.READ_ONLY:
        # It counted as not done, by somebody's word or by a look-up. The receipt says that it is.
        log.error("call.contradicted", run_id=run.pk, call_id=call.pk, was=call.reason)
        data |= {"was": call.reason}
        move_call(run, call, "contradict", actor=actor, data=data, contradicted_at=now, **fields)
    else:
        sets = None
        if call.state == "landed" and items.has_any(call):  # one more may be out
            sets = save(call, receipt=receipt.data, response=receipt.response)
            if len(items.receipts_of(call.pk)) > known:
                log.error("call.contradicted", run_id=run.pk, call_id=call.pk, was="in part")
        told = items.progress(call)
        record(run, "outcome.repeated", actor=actor, call=call, sets=sets, state=call.state, **told)
    settle(run)
    advance(run, seen.others if seen else None)


def fail(
    run: Run,
    call: ToolCall,
    code: str,
    detail: str,
    *,
    actor: str,
    look_again_at: datetime | None = None,
    **data: Any,
) -> None:
    """Under the run's lock: known to have had no effect, or no more than its items on record.
    `look_again_at`: after a doubt, when it may turn up all the same.
    """
    if call.state not in READY and items.has_any(call):
        part = items.in_part(call, detail or code)
        land(run, call, part, actor=actor, look_again_at=look_again_at, why=code, **data)
        return
    if call.state not in (*READY, "in_flight", "in_doubt"):
        record(run, "outcome.repeated", actor=actor, call=call, state=call.state)
        return
    items.end(
        run,
        call,
        "fail",
        actor=actor,
        reason=code,
        data={"reason": code} | data,
        detail=detail,
        ended_at=clock().now,
        next_lookup_at=look_again_at,
        next_attempt_at=None,
    )
    units.break_up(run, call)
    go_on(run)


def try_again(
    run: Run, call: ToolCall, code: str, detail: str, *, retry_after: float | None
) -> None:
    """Under the run's lock: passing trouble without an effect. Fails for good after ATTEMPT_LIMIT
    attempts, and where the run may not act any more.
    """
    if call.state not in ("approved", "in_flight"):
        fail(run, call, code, detail, actor=EXECUTOR)
        return
    attempts = call.attempts + 1
    save(call, attempts=attempts)
    if attempts >= ATTEMPT_LIMIT or not _may_still_act(run, call):
        fail(run, call, code, detail, actor=EXECUTOR)
        return
    growing = settings.RETRY_BACKOFF * 2.0 ** (attempts - 1)
    after = min(LONGEST_PAUSE, growing if retry_after is None else max(0.0, retry_after))
    due = clock().now + timedelta(seconds=after)
    move_call(
        run,
        call,
        "postpone",
        actor=EXECUTOR,
        data={"reason": code, "attempts": attempts, "next_attempt_at": due.isoformat()},
        reason=code,
        detail=detail,
        next_attempt_at=due,
        **NOT_ATTEMPTED,
    )
    doorbell.ring_task("agentruns.tasks.act", call.pk, call.epoch, after=after)


def doubt(run: Run, call: ToolCall, code: str, detail: str, *, actor: str) -> None:
    """Under the run's lock: the outcome is unknown. A read has no effect to be in doubt about."""
    if call.state != "in_flight":
        record(run, "outcome.repeated", actor=actor, call=call, state=call.state)
        return
    if call.tier == Tier.READ_ONLY:
        fail(run, call, code, detail, actor=actor)
        return
    now = clock().now
    horizon_at = _horizon(call, now, code)
    move_call(
        run,
        call,
        "doubt",
        actor=actor,
        data={"reason": code, "horizon_at": horizon_at.isoformat()},
        reason=code,
        detail=detail,
        doubted_at=now,
        horizon_at=horizon_at,
        next_lookup_at=_first_lookup(call, now),
    )
    go_on(run)


def go_on(run: Run) -> None:
    """After an outcome: a stopped run settles, a living one advances."""
    settle(run)
    advance(run)


def _may_still_act(run: Run, call: ToolCall) -> bool:
    return (run.is_active and run.epoch == call.epoch) or units.may_finish(run, call)


def _horizon(call: ToolCall, now: datetime, code: str) -> datetime:
    """Until when the outside may act on the call. It has it all once its executor has reported, or
    the call's own time is over (the drain's may be over before).
    """
    registered = registry.get(call.tool)
    horizon = registered.horizon if registered else registry.UNKNOWN_HORIZON
    own_end = call.deadline_at if code == NO_REPORT else None
    sent_by = max(now, own_end or now)
    return sent_by + timedelta(seconds=horizon * settings.LOOKUP_HORIZON_SCALE)


def _first_lookup(call: ToolCall, now: datetime) -> datetime | None:
    registered = registry.get(call.tool)
    return now + FIRST_LOOKUP_AFTER if registered and registered.has_lookup else None
