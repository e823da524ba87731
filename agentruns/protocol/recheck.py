"""Re-check what has not gone yet, when an admin has changed what a tool may do (R32).

Guarantees that the stricter rule holds for it at once, without waiting for its turn: what the gate
would refuse is refused now, and what asks a person asks as many as it takes now. Each run under
its lock, in a transaction of its own. What comes too late for it, the gate finds: it asks anew.
"""

from dataclasses import dataclass
from typing import Any

import structlog
from django.db import OperationalError, transaction

from agentruns import doorbell
from agentruns.models import ToolCall
from agentruns.protocol.advance import advance
from agentruns.protocol.consent import tighten
from agentruns.protocol.gate import (
    RATE_LIMITED,
    deny,
    has_consent,
    policy_of,
    refusal,
)
from agentruns.protocol.ledger import SWEEPER, lock_run, person, record, save
from agentruns.protocol.sight import Sight, look
from agentruns.states import NOT_YET_IN_FLIGHT, READY

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Rechecked:
    """How many calls were refused, how many wait for more people than before; `left`: runs that
    were busy for too long, whose calls the gate will check.
    """

    denied: int = 0
    raised: int = 0
    left: int = 0


def recheck_tool(name: str, *, by: Any) -> Rechecked:
    """Hold every call of the tool that has not gone against its policy of now. `by`: the person
    who changed it, None for the system. What a stop has frozen is left to the gate.
    """
    actor = person(by) if by else SWEEPER
    waiting = ToolCall.objects.filter(tool=name, state__in=NOT_YET_IN_FLIGHT)
    denied = raised = left = 0
    for run_id in sorted(set(waiting.values_list("run_id", flat=True))):
        try:
            done = _recheck_run(run_id, name, actor)
        except OperationalError:
            log.exception("recheck.left", run_id=run_id, tool=name)
            left += 1
            continue
        denied, raised = denied + done.count("denied"), raised + done.count("raised")
    return Rechecked(denied, raised, left)


def _recheck_run(run_id: str, name: str, actor: str) -> list[str]:
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        if not run.is_active:
            return []
        waiting = ToolCall.objects.filter(run=run, tool=name, state__in=NOT_YET_IN_FLIGHT)
        ids = list(waiting.order_by("number").values_list("pk", flat=True))
        # One after the other: with a step of a unit, those after it are refused.
        done = [_recheck(look(call_id), actor) for call_id in ids]
        if "denied" in done:
            advance(lock_run(run_id))
        return done


def _recheck(sight: Sight, actor: str) -> str:
    run, call = sight.run, sight.call
    if call.state not in NOT_YET_IN_FLIGHT:
        return ""
    if reason := _refusal(sight):
        deny(run, call, reason, actor=actor, now=sight.now)
        return "denied"
    if call.state == "awaiting_approval" and tighten(run, call, policy_of(sight), actor=actor):
        return "raised"
    if call.state in READY and call.reason == RATE_LIMITED:
        # By another limit, its time is another.
        sets = save(call, next_attempt_at=None, reason="")
        record(run, "call.due_again", actor=actor, call=call, sets=sets)
        doorbell.ring_task("agentruns.tasks.act", call.pk, call.epoch)
    return ""


def _refusal(sight: Sight) -> str:
    """Why the call cannot go any more; what has not been asked yet is asked at its time."""
    call = sight.call
    if reason := refusal(sight):
        return reason
    if call.state not in READY:
        return ""
    return "" if has_consent(call, policy_of(sight), sight.now) else "needs_consent"
