"""The sweeper: whatever a lost doorbell, a dead worker or a passed deadline left lying.

Guarantees that a run is never stuck for want of a message: each thing found here is settled by
the same verb that the doorbell would have called, in a transaction of its own. Several sweepers
may run at once: none waits for a row that another one settles (SKIP LOCKED), and whoever comes
second finds nothing left to do. (A stop that the sweeper asks for waits, as every stop does.)
"""

from collections.abc import Callable
from datetime import timedelta

import structlog
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from agentruns import doorbell, pausepoints
from agentruns.models import LedgerEvent, Run, ToolCall
from agentruns.protocol.advance import advance
from agentruns.protocol.budget import enforce_budget, out_of_time
from agentruns.protocol.consent import expire_consent
from agentruns.protocol.doubt import expire_call
from agentruns.protocol.drain import begin_drain
from agentruns.protocol.lease import take_away_lease
from agentruns.protocol.ledger import clock, lock_run_if_free
from agentruns.protocol.stop import request_stop
from agentruns.reminders import reminders
from agentruns.states import ACTIVE_RUN, READY

BATCH = 200
QUIET = timedelta(seconds=2)  # a doorbell has had its time

log = structlog.get_logger(__name__)


def sweep() -> dict[str, int]:
    """Settle what is due; returns how many of each kind were."""
    now = clock().now
    calls, runs = ToolCall.objects.all(), Run.objects.all()
    # As ToolCall.outlasts_drain has it.
    cut_short = Q(run__drain_deadline__lte=now, is_uninterruptible=False, unit="")
    late = Q(deadline_at__lte=now) | cut_short
    due: dict[str, tuple[Callable[[str], bool], QuerySet[Run] | QuerySet[ToolCall]]] = {
        "leases": (
            take_away_lease,
            runs.exclude(lease_holder="").filter(lease_expires_at__lte=now),
        ),
        "deadlines": (expire_call, calls.filter(late, state="in_flight")),
        "approvals": (
            expire_consent,
            calls.filter(state="awaiting_approval", consent_expires_at__lte=now),
        ),
        "stopping": (_drain, runs.filter(status__in=("cancel_requested", "draining"))),
        "orphans": (_stop_orphan, runs.filter(status__in=ACTIVE_RUN, parent__status="failed")),
        "budgets": (enforce_budget, out_of_time(now)),
    }
    to_ring: dict[str, tuple[Callable[[str], bool], QuerySet[Run] | QuerySet[ToolCall]]] = {
        "retries": (_ring_act, calls.filter(state__in=READY, next_attempt_at__lte=now)),
        "lookups": (_ring_lookup, calls.filter(next_lookup_at__lte=now)),
        "silent": (ring_again, _silent_runs()),
    }
    settled = {kind: _each(kind, verb, found) for kind, (verb, found) in due.items()}
    return settled | {kind: _remind(kind, verb, found) for kind, (verb, found) in to_ring.items()}


def _each(kind: str, verb: Callable[[str], bool], found: QuerySet[Run] | QuerySet[ToolCall]) -> int:
    run_id = "pk" if found.model is Run else "run_id"
    # In any order: what cannot be settled yet must not stand before the rest for ever.
    ids = found.order_by("?").values_list("pk", run_id)[:BATCH]
    return sum(_apart(kind, verb, pk, run_id) for pk, run_id in ids)


def _remind(
    kind: str, verb: Callable[[str], bool], found: QuerySet[Run] | QuerySet[ToolCall]
) -> int:
    """Ring, but with growing pauses for what has not moved since it was rung for."""
    since = ("pk", "ledger_seq") if found.model is Run else ("run_id", "run__ledger_seq", "lookups")
    things = found.order_by("?").values_list("pk", *since)[:BATCH]
    return sum(
        _apart(kind, verb, pk, run_id)
        for pk, run_id, *moved in things
        if reminders.is_due((kind, pk, *moved))
    )


def _apart(kind: str, verb: Callable[[str], bool], pk: str, run_id: str) -> bool:
    """One item's trouble must not keep the others waiting."""
    pausepoints.reach(run_id, f"sweep:{kind}")
    try:
        return verb(pk)
    except Exception:
        log.exception("sweep.failed", verb=verb.__name__, pk=pk)
        return False
    finally:
        pausepoints.reach(run_id, f"swept:{kind}")


def _drain(run_id: str) -> bool:
    with transaction.atomic(durable=True):
        run = lock_run_if_free(run_id)
        if run is None:
            return False
        before = run.status
        begin_drain(run)
        return run.status != before


def _stop_orphan(run_id: str) -> bool:
    """What a run has started does not go on when it has failed (R05)."""
    parent = Run.objects.values_list("parent_id", flat=True).get(pk=run_id)
    request_stop(run_id, by=None, signal="dependency", reason=f"parent {parent} failed")
    return True


def _ring_act(call_id: str) -> bool:
    epoch = ToolCall.objects.values_list("run__epoch", flat=True).get(pk=call_id)
    doorbell.ring_task("agentruns.tasks.act", call_id, epoch)
    return True


def _ring_lookup(call_id: str) -> bool:
    doorbell.ring_task("agentruns.tasks.look_up", call_id)
    return True


def _silent_runs() -> QuerySet[Run]:
    """Runs that ought to be moving, hold no lease, and have recorded nothing for a while."""
    spoke = LedgerEvent.objects.filter(
        run=F("run"), seq=F("run__ledger_seq"), at__gt=clock().now - QUIET
    )
    claimed = ToolCall.objects.filter(
        run=OuterRef("pk"), state__in=READY, claim_expires_at__gt=clock().now
    )
    return (
        Run.objects.filter(status__in=("queued", "running"), lease_holder="")
        .exclude(pk__in=spoke.values("run"))
        .exclude(Exists(claimed))
    )


def ring_again(run_id: str) -> bool:
    """Ring for whatever this run's rows say comes next."""
    with transaction.atomic(durable=True):
        run = lock_run_if_free(run_id)
        if run is None:
            return False
        if run.status == "queued":
            doorbell.ring_task("agentruns.tasks.think", run.pk, run.epoch)
        elif run.turn:
            advance(run)
        return True
