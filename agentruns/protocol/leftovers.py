"""Leftovers: drafts out there whose call can no longer go out.

Guarantees that what `prepare` left outside (a prepared transaction, a staged file, an
authorisation) is dropped, also where the executor that made it died, and never under a call that
may still use it: one in doubt keeps its draft, and one that is open either keeps it or, while it
waits, has it set aside and drafts anew.
"""

import structlog
from django.db import transaction
from django.db.models import Q

from agentruns.models import ToolCall
from agentruns.protocol.execute import drop_draft
from agentruns.protocol.gate import RATE_LIMITED
from agentruns.protocol.ledger import SWEEPER, clock, lock_call_if_free, record, save
from agentruns.states import CALL
from tools import registry
from tools.contract import Draft
from tools.registry import RegisteredTool

# A frozen call that is released drafts anew.
NEEDS_NO_DRAFT = (*sorted(CALL.terminal), "frozen")

log = structlog.get_logger(__name__)


def set_drafts_aside() -> int:
    """Drop the drafts of calls that wait for a person, or for their turn; returns how many. They
    may hold locks, or somebody's money, for hours; the calls draft anew when they go.
    """
    names = [item.name for item in registry.all() if item.has_drafts]
    drafted = ToolCall.objects.filter(
        tool__in=names, state="prepared", claim_token="", draft__isnull=False
    )
    waits = Q(run__status="suspended") | Q(reason=RATE_LIMITED, next_attempt_at__gt=clock().now)
    return sum(_set_aside(pk) for pk in drafted.filter(waits).values_list("pk", flat=True))


def _set_aside(call_id: str) -> bool:
    with transaction.atomic(durable=True):
        locked = lock_call_if_free(call_id)
        if locked is None:
            return False
        run, call = locked
        waits = run.status == "suspended" or call.reason == RATE_LIMITED
        if call.state != "prepared" or call.draft is None or call.claim_token or not waits:
            return False
        draft = Draft(call.draft)
        sets = save(call, draft=None)
        record(run, "call.draft_set_aside", actor=SWEEPER, call=call, sets=sets)
    drop_draft(call, draft)
    return True


def drop_leftovers() -> int:
    """Have each tool drop what it has left; returns how much that was. Asks outside systems."""
    return sum(_drop(item) for item in registry.all() if item.has_drafts)


def _drop(item: RegisteredTool) -> int:
    """One system's trouble must not keep the others waiting."""
    try:
        there = item.drafts()
    except Exception as error:  # noqa: BLE001  (it will be asked again)
        log.warning("leftovers.unknown", tool=item.name, error=repr(error))
        return 0
    # What has no row here is somebody else's.
    calls = ToolCall.objects.filter(
        request_id__in=there, tool=item.name, state__in=NEEDS_NO_DRAFT
    ).select_related("run__owner")
    for call in calls:
        log.info("leftovers.dropped", tool=item.name, run_id=call.run_id, call_id=call.pk)
        drop_draft(call, Draft(call.draft or {}))
    return len(calls)
