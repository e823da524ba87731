"""Whether anybody works at all, told from the ledger alone: what ought to have been taken up
and was not. Stop needs no worker, so the page says that it still works.
"""

from datetime import timedelta

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from agentruns.models import LedgerEvent, Run, ToolCall

PATIENCE = timedelta(seconds=5)


def seem_away() -> bool:
    """Runs that nobody drives, leases that nobody takes away, or calls that nobody claims.

    What was queued anew, or let go on, is late only once its run's last event is.
    """
    late = Now() - PATIENCE
    runs = Run.objects.filter(
        Q(status="queued", created_at__lt=late) & _is_silent("pk", "ledger_seq")
        | Q(lease_expires_at__lt=late)
    ).exclude(status__in=("completed", "failed", "stopped_clean", "stopped_dirty"))
    calls = ToolCall.objects.filter(
        _is_silent("run", "run__ledger_seq"),
        run__status="running",
        state="approved",
        is_eager=True,
        proposed_at__lt=late,
        claim_expires_at=None,
        next_attempt_at=None,
    )
    return runs.exists() or calls.exists()


def _is_silent(run: str, seq: str) -> Exists:
    """Nothing has been recorded of the run for some seconds."""
    last = LedgerEvent.objects.filter(run=OuterRef(run), seq=OuterRef(seq))
    return Exists(last.filter(at__lt=Now() - PATIENCE))
