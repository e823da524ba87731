"""Fair turns: places to think and to act go round among people, and runs come second.

Guarantees that nobody holds more than their share of the places, however many runs they have, and
that whoever holds fewer goes first. The rows decide, and not the order of messages: a message that
arrives does what is due for who has less, and its own run is rung for again.

Of places to act, the gate counts those of a call's owner (sight.py). Nobody who holds the lock
below waits for a run's, so nothing can wait in a circle.
"""

from collections import Counter
from collections.abc import Iterable

from django.conf import settings
from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from agentruns.models import Run, ToolCall
from agentruns.protocol.ledger import OWNERS_RUNS, clock
from agentruns.states import CALL, READY

LOOKED_AT = 500  # runs or calls that wait, the oldest

Due = tuple[str, int]  # the id of a run or a call, and the epoch of its run


def lock_owner(owner_id: int) -> None:
    """Until the end of the transaction, nobody else counts what this person has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [OWNERS_RUNS, owner_id])


def share_of(places: int) -> int:
    """How many of the places one person may hold: most, and never all where there are several."""
    return max(1, places - max(1, places // 4))


def may_think(run: Run) -> bool:
    """Under the run's lock: whether its owner may hold one more place to think."""
    lock_owner(run.owner_id)
    held = _leased().filter(owner=run.owner_id).exclude(pk=run.pk).count()
    return held < share_of(settings.THINK_PLACES)


def turns_before(run_id: str) -> list[Due]:
    """The runs to think for before this one: of people who hold fewer places, the fewest first."""
    held = Counter(_leased().values_list("owner", flat=True))
    owner = Run.objects.values_list("owner", flat=True).filter(pk=run_id).first()
    return _in_turn(_due_runs(held[owner]), held, below=held[owner])


def calls_before(call_id: str) -> list[Due]:
    """The calls to do before this one, likewise."""
    held = Counter(claimed_calls().values_list("run__owner", flat=True))
    owner = ToolCall.objects.values_list("run__owner", flat=True).filter(pk=call_id).first()
    return _in_turn(_due_calls(held[owner]), held, below=held[owner])


def next_turn() -> Due | None:
    """The run to think for now that a place is free again, if any waits whose owner may."""
    held = Counter(_leased().values_list("owner", flat=True))
    return next(iter(_in_turn(_due_runs(1), held, below=share_of(settings.THINK_PLACES))), None)


def next_call() -> Due | None:
    """The call to do now that a place is free again, likewise."""
    held = Counter(claimed_calls().values_list("run__owner", flat=True))
    return next(iter(_in_turn(_due_calls(1), held, below=share_of(settings.ACT_PLACES))), None)


def _leased() -> QuerySet[Run]:
    return Run.objects.exclude(lease_holder="")


def claimed_calls() -> QuerySet[ToolCall]:
    """What executors are at, for runs that go on. (Those of a stopped run are let go of.)"""
    claimed = Q(state__in=READY, claim_expires_at__gt=clock().now) | Q(state="in_flight")
    return ToolCall.objects.filter(claimed, run__status__in=("running", "suspended"))


def _due_runs(wanted: int) -> Iterable[tuple[int, str, int]]:
    """Owner, run and epoch of what waits for its next turn, the oldest first. None is looked for
    where nobody can hold less than who asks.
    """
    if not wanted:
        return []
    acting = ToolCall.objects.filter(run=OuterRef("pk")).exclude(state__in=CALL.terminal)
    waiting = Run.objects.filter(status__in=("queued", "running"), lease_holder="")
    due = waiting.exclude(Exists(acting)).order_by("created_at")
    return due.values_list("owner", "pk", "epoch")[:LOOKED_AT]


def _due_calls(wanted: int) -> Iterable[tuple[int, str, int]]:
    """The same of calls."""
    if not wanted:
        return []
    now = clock().now
    free = Q(claim_expires_at=None) | Q(claim_expires_at__lte=now)
    in_time = Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
    # Effects go out one after another, once the answer has ended.
    earlier = ToolCall.objects.filter(run=OuterRef("run"), number__lt=OuterRef("number"))
    earlier = earlier.filter(is_eager=False).exclude(state__in=CALL.terminal)
    in_turn = Q(is_eager=True) | (Q(run__lease_holder="") & ~Exists(earlier))
    waiting = ToolCall.objects.filter(state__in=READY, run__status="running", epoch=F("run__epoch"))
    due = waiting.filter(free, in_time, in_turn).order_by("proposed_at")
    return due.values_list("run__owner", "pk", "epoch")[:LOOKED_AT]


def _in_turn(due: Iterable[tuple[int, str, int]], held: Counter[int], *, below: int) -> list[Due]:
    """One for each person who holds fewer places than `below`: those who hold the fewest first."""
    firsts: dict[int, Due] = {}
    for owner, pk, epoch in due:
        if held[owner] < below:
            firsts.setdefault(owner, (pk, epoch))
    return [firsts[owner] for owner in sorted(firsts, key=lambda owner: held[owner])]
