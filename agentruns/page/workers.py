"""Whether anybody works at all, told from the ledger alone: what ought to have been taken up
and was not. Stop needs no worker, so the page says that it still works.
"""

from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from agentruns.models import Run, ToolCall

PATIENCE = timedelta(seconds=5)


def seem_away() -> bool:
    """Runs that nobody drives, leases that nobody takes away, or calls that nobody claims."""
    late = Now() - PATIENCE
    runs = Run.objects.filter(
        Q(status="queued", created_at__lt=late) | Q(lease_expires_at__lt=late)
    ).exclude(status__in=("completed", "failed", "stopped_clean", "stopped_dirty"))
    calls = ToolCall.objects.filter(
        run__status="running",
        state="approved",
        is_eager=True,
        proposed_at__lt=late,
        claim_expires_at=None,
    )
    return runs.exists() or calls.exists()
