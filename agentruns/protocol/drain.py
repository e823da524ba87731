"""Drain: from Stop to settled, by evidence only (protocol §8).

Guarantees that a run is called stopped only once its driver gave the lease back (or lost it) and
nothing is in flight; and that it is called clean only if nothing is in doubt.
"""

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction

from agentruns import pausepoints
from agentruns.models import Run, StopRequest, ToolCall
from agentruns.protocol.ledger import DRIVER, EXECUTOR, clock, move_run


def drain_deadline(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.DRAIN_DEADLINE)


def begin_drain(run: Run) -> None:
    """Under the run's lock: if no driver holds a lease any more, drain; and settle if possible."""
    if run.status == "cancel_requested" and not run.lease_holder:
        move_run(run, "drain", actor=DRIVER)
    settle(run)


def settle(run: Run) -> None:
    """Under the run's lock: reach `stopped_*` if nothing is in flight, and clean if no doubt.

    Called by whoever records the last outcome, and again for each doubt that is resolved.
    """
    open_states = set(
        ToolCall.objects.filter(run=run, state__in=("in_flight", "in_doubt")).values_list(
            "state", flat=True
        )
    )
    now = clock().now
    if run.status == "draining" and "in_flight" not in open_states:
        verb = "settle_dirty" if open_states else "settle_clean"
        move_run(run, verb, actor=EXECUTOR, ended_at=now, drain_deadline=None)
        StopRequest.objects.filter(run=run, epoch=run.epoch).update(settled_at=now)
        transaction.on_commit(partial(pausepoints.reach, run.pk, "drain:settled"))
    elif run.status == "stopped_dirty" and not open_states:
        move_run(run, "reconcile", actor=EXECUTOR)
