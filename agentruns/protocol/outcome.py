"""Outcomes: what became of a call that passed the gate (protocol §4, §8).

Guarantees that an outcome is recorded however late it comes and whatever the epoch, keyed by the
claim; that `failed` means known to have had no effect; and that truth wins over an answer.
"""

from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction

from agentruns import pausepoints
from agentruns.models import Run, ToolCall
from agentruns.protocol.advance import advance
from agentruns.protocol.drain import settle
from agentruns.protocol.gate import Claim
from agentruns.protocol.ledger import EXECUTOR, clock, lock_call, move_call, record
from tools import registry
from tools.contract import Receipt, Tier

FIRST_LOOKUP_AFTER = timedelta(seconds=1)

log = structlog.get_logger(__name__)


def record_landed(claim: Claim, receipt: Receipt, **measured: float) -> None:
    """The effect is in the world, with its receipt. `measured`: milliseconds, for the audit."""
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token == claim.token:
            land(run, call, receipt, actor=EXECUTOR, **measured)
    pausepoints.reach(run.pk, f"call:{call.number}:landed")


def record_failed(claim: Claim, code: str, detail: str) -> None:
    """It is known that nothing happened. Before the gate or after it."""
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token == claim.token:
            fail(run, call, code, detail, actor=EXECUTOR)
    pausepoints.reach(run.pk, f"call:{call.number}:failed")


def record_doubt(claim: Claim, detail: str) -> None:
    """Nobody knows whether it happened: a time-out or a broken connection after the gate."""
    with transaction.atomic(durable=True):
        run, call = lock_call(claim.call_id)
        if call.claim_token == claim.token:
            doubt(run, call, "no_answer", detail, actor=EXECUTOR)
    pausepoints.reach(run.pk, f"call:{call.number}:doubted")


def land(run: Run, call: ToolCall, receipt: Receipt, *, actor: str, **data: Any) -> None:
    """Under the run's lock: landed, from wherever the call was."""
    fields: dict[str, Any] = {"receipt": receipt.data, "response": receipt.response}
    # Why it was in doubt, or thought not to have happened, is said no more; the ledger keeps it.
    fields |= {"ended_at": clock().now, "reason": "", "detail": "", "next_lookup_at": None}
    if call.state in ("in_flight", "in_doubt"):
        move_call(run, call, "land", actor=actor, data=data, **fields)
    elif call.state == "failed" and call.gate_passed_at:
        # Somebody had said that it did not happen. The receipt says that it did.
        log.error("call.contradicted", run_id=run.pk, call_id=call.pk, was=call.reason)
        data |= {"was": call.reason}
        move_call(
            run, call, "contradict", actor=actor, data=data, contradicted_at=clock().now, **fields
        )
    else:
        record(run, "outcome.repeated", actor=actor, call=call, state=call.state)
    go_on(run)


def fail(run: Run, call: ToolCall, code: str, detail: str, *, actor: str) -> None:
    """Under the run's lock: known to have had no effect."""
    if call.state not in ("approved", "prepared", "in_flight", "in_doubt"):
        record(run, "outcome.repeated", actor=actor, call=call, state=call.state)
        return
    move_call(
        run,
        call,
        "fail",
        actor=actor,
        data={"reason": code},
        reason=code,
        detail=detail[:2000],
        ended_at=clock().now,
        next_lookup_at=None,
    )
    go_on(run)


def doubt(run: Run, call: ToolCall, code: str, detail: str, *, actor: str) -> None:
    """Under the run's lock: the outcome is unknown. A read has no effect to be in doubt about."""
    if call.state != "in_flight":
        record(run, "outcome.repeated", actor=actor, call=call, state=call.state)
        return
    if call.tier == Tier.READ_ONLY:
        fail(run, call, code, detail, actor=actor)
        return
    move_call(
        run,
        call,
        "doubt",
        actor=actor,
        data={"reason": code},
        reason=code,
        detail=detail[:2000],
        next_lookup_at=_first_lookup(call, clock().now),
    )
    go_on(run)


def go_on(run: Run) -> None:
    """After an outcome: a stopped run settles, a living one advances."""
    settle(run)
    advance(run)


def _first_lookup(call: ToolCall, now: datetime) -> datetime | None:
    registered = registry.get(call.tool)
    return now + FIRST_LOOKUP_AFTER if registered and registered.has_lookup else None
