"""Budget: what a run may use, and what happens when it has used it up (R08, protocol §5).

Guarantees that no turn begins and no call passes the gate once a limit is reached, whichever
process notices it first; what is in flight reports. By the run's terms it then stops with what
has not started kept for a person, or goes on reading only and wraps up, or waits for a person.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet, Sum, Value
from django.utils.translation import gettext as _

from agentruns.errors import BadInput, WrongState
from agentruns.models import LIMITS, Output, Run, StopRequest, Terms, ToolCall
from agentruns.models.shown import merged
from agentruns.protocol.ledger import SWEEPER, clock, lock_run, person, record, save
from agentruns.protocol.pause import hold, let_go
from agentruns.protocol.stop import request_stop
from agentruns.states import ACTIVE_RUN
from tools.contract import Tier

BUDGET = "budget"
WRAP_UP_TURNS = 2  # answers that a degraded run still gets
MILLION = Decimal(1_000_000)


@dataclass(frozen=True)
class Usage:
    """What a run has used so far, in the units of Terms. `seconds` are those at work."""

    tokens: int
    cost: Decimal
    calls: int
    seconds: float

    def of(self, limit: str) -> Decimal:
        """What counts against `limit`, one of LIMITS."""
        return {
            "token_limit": Decimal(self.tokens),
            "cost_limit": self.cost,
            "call_limit": Decimal(self.calls),
            "time_limit": Decimal(self.seconds).quantize(Decimal("0.1")),
        }[limit]


def usage(run: Run, now: datetime | None = None) -> Usage:
    """Count it from the ledger's rows. `cost` is of the tokens written, at the agent's price."""
    counted = Output.objects.filter(run=run).aggregate(
        read=Sum("tokens_in"), wrote=Sum("tokens_out")
    )
    read, wrote = counted["read"] or 0, counted["wrote"] or 0
    price = run.agent.price_per_million_tokens or Decimal(0)
    return Usage(
        tokens=read + wrote,
        cost=wrote * price / MILLION,
        calls=ToolCall.objects.filter(run=run, gate_passed_at__isnull=False).count(),
        seconds=_time_at_work(run, now).total_seconds(),
    )


def exceeded(run: Run, now: datetime | None = None) -> str:
    """The first of the run's limits that is reached, one of LIMITS; "" if none is."""
    if not run.limits:
        return ""
    used = usage(run, now)
    return next((name for name, limit in run.limits.items() if used.of(name) >= limit), "")


def allows(run: Run, tier: Tier, now: datetime) -> bool:
    """Under the run's lock: whether its budget lets a call of `tier` pass the gate."""
    if is_wrapping_up(run) and tier is Tier.READ_ONLY:
        return True
    return run.degraded_at is None and not exceeded(run, now)


def is_wrapping_up(run: Run) -> bool:
    """Whether its terms let the run read on beyond a limit, and finish."""
    return run.on_limit == Terms.OnLimit.DEGRADE


def enforce_budget(run_id: str) -> bool:
    """Do what the run's terms say if a limit is reached; whether it may not begin a turn now.

    Cheap for a run without limits. Safe to call at any moment, and twice.
    """
    if not _has_limits(run_id):
        return False
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        limit = exceeded(run) if run.is_active else ""
        if not limit:
            return not run.is_active
        if run.on_limit == Terms.OnLimit.WAIT:
            return _wait(run, limit)
        if is_wrapping_up(run) and not _has_wrapped_up(run):
            return _degrade(run, limit)
    # Its own transaction: Stop locks the whole tree, in order.
    request_stop(run_id, by=None, signal=BUDGET, reason=limit, pending=StopRequest.Pending.FREEZE)
    return True


def raise_budget(run_id: str, *, by: Any, **limits: int | Decimal | None) -> Run:
    """Set new limits (names of LIMITS; None lifts one), and let a run that waited for it go on.

    Raises NotFound; BadInput for a limit that is used up already; WrongState if it has ended.
    """
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        if run.status in ("completed", "failed"):
            raise WrongState(_("This run has ended by itself."), status=run.status)
        used = usage(run)
        for name, value in limits.items():
            if name not in LIMITS:
                raise BadInput(_("There is no such limit: %(name)s") % {"name": name}, field=name)
            if value is not None and value <= used.of(name):
                sentence = _("It has used %(used)s already: set a higher limit.")
                raise BadInput(sentence % {"used": used.of(name)}, field=name)
        before = {name: getattr(run, name) for name in limits}
        sets = save(run, **limits)
        is_free = not exceeded(run)
        if is_free and run.degraded_at is not None:
            sets = merged(sets, save(run, degraded_at=None))
        record(
            run,
            "budget.raised",
            actor=person(by),
            sets=sets,
            before=_in_words(before),
            after=_in_words(limits),
        )
        if is_free and run.suspended_reason == BUDGET:
            let_go(run, actor=person(by))
    return run


def out_of_time(now: datetime) -> QuerySet[Run]:
    """Runs that reached their time limit and go on as if they had not; for the sweeper."""
    allowed = ExpressionWrapper(
        F("time_limit") * Value(timedelta(seconds=1)), output_field=DurationField()
    )
    at_work = Run.objects.filter(status="running", degraded_at=None, time_limit__isnull=False)
    return at_work.filter(acting_since__lte=Value(now) + F("acted") - allowed)


def _time_at_work(run: Run, now: datetime | None) -> timedelta:
    """Time in which it waited, was paused or stopped, or in which no worker had it, is none."""
    if run.acting_since is None:
        return run.acted
    return run.acted + max(timedelta(0), (now or clock().now) - run.acting_since)


def _has_limits(run_id: str) -> bool:
    limited = Q()
    for name in LIMITS:
        limited |= Q(**{f"{name}__isnull": False})
    return Run.objects.filter(limited, pk=run_id, status__in=ACTIVE_RUN).exists()


def _in_words(limits: dict[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in limits.items()}


def _wait(run: Run, limit: str) -> bool:
    """Hold it until somebody raises the limit. A person's pause goes on holding it."""
    if run.suspended_reason not in (BUDGET, "paused"):
        hold(run, actor=SWEEPER, reason=BUDGET, limit=limit)
    return True


def _degrade(run: Run, limit: str) -> bool:
    if run.degraded_at is None:
        sets = save(run, degraded_at=clock().now, degraded_turn=run.turn)
        record(run, "run.degraded", actor=SWEEPER, sets=sets, limit=limit, turn=run.turn)
    return False


def _has_wrapped_up(run: Run) -> bool:
    is_between = not run.lease_holder  # its last answer is not cut short
    enough = run.turn >= run.degraded_turn + WRAP_UP_TURNS
    return run.degraded_at is not None and is_between and enough
