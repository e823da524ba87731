"""Drain: from Stop to settled, by evidence only (protocol §8).

Guarantees that a run is called stopped only once its driver gave the lease back (or lost it),
nothing is in flight, and each atomic unit that had begun is finished or out of time; and that it
is called clean only if nothing is in doubt.
"""

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction

from agentruns import pausepoints
from agentruns.models import Run
from agentruns.protocol import units
from agentruns.protocol.ledger import (
    DRIVER,
    EXECUTOR,
    SWEEPER,
    clock,
    move_run,
    save,
    stop_of,
)
from agentruns.protocol.undo import is_undo_due, ring_if_due
from tools import prepared

OPEN_STATES = """
SELECT DISTINCT state FROM agentruns_toolcall
 WHERE run_id = %s AND state IN ('in_flight', 'in_doubt')"""


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
    if not run.is_stopping and run.status != "stopped_dirty":
        return
    now = clock().now
    is_waiting = run.is_stopping and _waits_for_units(run, now)
    open_states = {state for (state,) in prepared.run(OPEN_STATES, [run.pk])}
    is_idle = "in_flight" not in open_states and not is_waiting
    if run.status == "draining" and is_idle:
        verb = "settle_dirty" if open_states else "settle_clean"
        stop = stop_of(run)
        assert stop is not None
        sets = save(stop, settled_at=now, undo_is_due=is_undo_due(run, stop))
        move_run(run, verb, actor=EXECUTOR, sets=sets, ended_at=now, drain_deadline=None)
        transaction.on_commit(partial(pausepoints.reach, run.pk, "drain:settled"))
    elif run.status == "stopped_dirty" and not open_states:
        move_run(run, "reconcile", actor=EXECUTOR)
    if run.is_stopped:
        ring_if_due(run)


def _waits_for_units(run: Run, now: datetime) -> bool:
    """Whether an atomic unit that had begun has time to be finished; if so, ring for its step."""
    if run.drain_deadline is not None and run.drain_deadline <= now:
        units.freeze_unfinished(run, now, actor=SWEEPER)
    return units.ring_next(run)
