"""The invariants of the stop protocol (§12), checked over the database and the world's record.

Each check takes one thing after the other and says what is wrong with it, if anything is. Memory
stays small: runs are read one at a time, the world's effects in batches.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from django.db import connection, transaction
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from agentruns.models import LedgerEvent, Output, Run, StopRequest, ToolCall
from agentruns.models.ledger import HASH
from agentruns.planner.history import messages_of
from agentruns.replay import impossible_steps
from agentruns.states import (
    CALL,
    GROUPS,
    NOT_YET_IN_FLIGHT,
    OUTPUT,
    RUN,
    STOPPED_RUN,
    STOPPING_RUN,
    WAITING,
)
from tools.contract import Tier
from tools.world.record import RECORDED, Effect, effects

BATCH = 500
# Where the effect of a call may be out there.
OUTSIDE = ("landed", "in_doubt", "in_flight")

_IS_INTACT = f"{HASH.format(row='agentruns_ledgerevent')} = agentruns_ledgerevent.hash"


@dataclass(frozen=True)
class Breach:
    """One thing that is not as the protocol says: where, and what."""

    run_id: str
    what: str


# What a check says of one thing that it looked at: nothing, or a breach.
Finding = Breach | None


@dataclass(frozen=True)
class Facts:
    """One run, with all that is on record about it."""

    run: Run
    calls: list[ToolCall]
    events: list[LedgerEvent]  # in order of seq, each with `is_intact`
    stops: list[StopRequest]
    outputs: list[Output]

    def breach(self, what: str) -> Breach:
        return Breach(self.run.pk, what)


@dataclass(frozen=True)
class Scope:
    """What to look at: runs and effects since a moment; a world, if there is one."""

    since: datetime | None = None
    world_dir: Path | None = None
    run_ids: tuple[str, ...] = ()

    def runs(self) -> QuerySet[Run]:
        runs = Run.objects.order_by("pk")
        if self.since is not None:
            runs = runs.filter(created_at__gte=self.since)
        return runs.filter(pk__in=self.run_ids) if self.run_ids else runs

    def effects(self) -> list[Effect]:
        found = effects(self.world_dir) if self.world_dir else []
        return [each for each in found if self.since is None or each.at >= self.since]


@dataclass(frozen=True)
class Invariant:
    """A rule with its checks: over each run, over the whole, or both."""

    code: str
    title: str
    of_run: Callable[[Facts], Iterator[Finding]] | None = None
    of_all: Callable[[Scope], Iterator[Finding]] | None = None


@dataclass
class Result:
    """How many things were looked at for an invariant, and what was found wrong."""

    invariant: Invariant
    checked: int = 0
    breaches: list[Breach] = field(default_factory=list)

    def take(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.checked += 1
            if finding is not None:
                self.breaches.append(finding)


def verify(scope: Scope) -> list[Result]:
    """Check every invariant over `scope`; the results in the order of INVARIANTS."""
    results = [Result(invariant) for invariant in INVARIANTS]
    for result in results:
        if result.invariant.of_all is not None:
            result.take(result.invariant.of_all(scope))
    for run_id in scope.runs().values_list("pk", flat=True).iterator(chunk_size=BATCH):
        with _one_moment():
            facts = _facts_of(run_id)
            for result in results:
                if result.invariant.of_run is not None:
                    result.take(result.invariant.of_run(facts))
    return results


@contextmanager
def _one_moment() -> Iterator[None]:
    """Read a run as it was at one moment, while others write to it."""
    if connection.in_atomic_block:  # somebody else decided already what this sees
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _facts_of(run_id: str) -> Facts:
    run = Run.objects.select_related("agent").get(pk=run_id)
    is_intact = RawSQL(_IS_INTACT, (), output_field=BooleanField())  # noqa: S611  (a constant)
    return Facts(
        run=run,
        calls=list(ToolCall.objects.filter(run=run).order_by("number")),
        events=list(
            LedgerEvent.objects.filter(run=run).annotate(is_intact=is_intact).order_by("seq")
        ),
        stops=list(StopRequest.objects.filter(run=run).order_by("epoch")),
        outputs=list(Output.objects.filter(run=run).order_by("turn")),
    )


def _nothing_starts_after_stop(facts: Facts) -> Iterator[Finding]:
    """I1. A run that was resumed has a newer epoch than its stop."""
    stopped_in = 0
    for event in facts.events:
        if event.kind == "stop.requested":
            stopped_in = max(stopped_in, event.data["epoch"])
        elif event.kind == "call.commit_allowed":
            is_late = event.data["epoch"] <= stopped_in
            what = f"call {event.call_id} passed the gate (seq {event.seq}) after the stop"
            yield facts.breach(what) if is_late else None


def _every_effect_has_its_row(scope: Scope) -> Iterator[Finding]:
    """I2, from the world's side: no orphans, no doubles."""
    found = iter(scope.effects())
    seen: Counter[str] = Counter()
    while batch := list(islice(found, BATCH)):
        keys = [effect.request_id for effect in batch]
        rows = {c.request_id: c for c in ToolCall.objects.filter(request_id__in=keys)}
        for effect in batch:
            row = rows.get(effect.request_id)
            if scope.run_ids and (row is None or row.run_id not in scope.run_ids):
                continue
            seen[effect.request_id] += 1
            yield _finding_of_effect(effect, row, seen[effect.request_id])


def _finding_of_effect(effect: Effect, row: ToolCall | None, times: int) -> Finding:
    what = f"{effect.tool} {effect.request_id or '(no key)'} at {effect.at.isoformat()}"
    if row is None:
        return Breach("", f"{what} is in the world, and on no record")
    if row.state not in OUTSIDE:
        return Breach(row.run_id, f"{what} is in the world; call {row.pk} is {row.state}")
    if times > 1:
        return Breach(row.run_id, f"{what} is in the world {times} times")
    return None


def _every_landed_row_has_its_effect(scope: Scope) -> Iterator[Finding]:
    """I3, for the tools whose effects the world records; what was undone is left aside."""
    if scope.world_dir is None:
        return
    # The rows are read first: what lands meanwhile is in the world before it is on record.
    landed = ToolCall.objects.filter(
        run__in=scope.runs(), state="landed", tool__in=RECORDED, undo_state=""
    ).exclude(tier=Tier.READ_ONLY)
    rows = list(landed.values_list("pk", "run_id", "request_id"))
    there = {effect.request_id for effect in effects(scope.world_dir)}
    for pk, run_id, request_id in rows:
        is_missing = request_id not in there
        yield (
            Breach(run_id, f"call {pk} is landed; the world knows nothing") if is_missing else None
        )


def _groups_add_up(facts: Facts) -> Iterator[Finding]:
    """I4: every call is in exactly one group, and only what is done can be undone."""
    for call in facts.calls:
        state = CALL.states.get(call.state)
        if state is None or state.group not in (*GROUPS, WAITING):
            yield facts.breach(f"call {call.pk} is in no group: {call.state}")
        elif call.undo_state and call.state != "landed":
            yield facts.breach(f"call {call.pk} is {call.undo_state}, and it is {call.state}")
        else:
            yield None


def _one_stop_per_epoch(facts: Facts) -> Iterator[Finding]:
    """I5: a StopRequest, its event, its answer and the run's epoch belong together."""
    asked = Counter(e.data["epoch"] for e in facts.events if e.kind == "stop.requested")
    for stop in facts.stops:
        is_won = stop.won_by == StopRequest.WonBy.STOP
        times = asked.pop(stop.epoch, 0)
        if is_won and times != 1:
            yield facts.breach(f"the stop of epoch {stop.epoch} is in the ledger {times} times")
        elif stop.answer.get("epoch") != stop.epoch or stop.epoch > facts.run.epoch:
            yield facts.breach(f"the stop of epoch {stop.epoch} has no answer of its own")
        else:
            yield None
    for epoch in asked:
        yield facts.breach(f"a stop of epoch {epoch} is in the ledger, and nobody's request")
    if facts.run.status in (*STOPPING_RUN, *STOPPED_RUN):
        is_asked = any(stop.epoch == facts.run.epoch for stop in facts.stops)
        yield None if is_asked else facts.breach(f"is {facts.run.status}; nobody asked for it")


def _chain_verifies(facts: Facts) -> Iterator[Finding]:
    """I6: seq without gaps, each hash of its event and of the hash before, the run at the head."""
    head, seq = "", 0
    for event in facts.events:
        seq += 1
        if event.seq != seq:
            yield facts.breach(f"event {seq} is missing: the next one is {event.seq}")
        elif event.prev_hash != head:
            yield facts.breach(f"event {seq} is not chained to the one before")
        elif not event.is_intact:  # type: ignore[attr-defined]
            yield facts.breach(f"event {seq} is not what was written")
        else:
            yield None
        head, seq = event.hash, event.seq
    is_head = (facts.run.ledger_seq, facts.run.ledger_head) == (seq, head)
    yield None if is_head else facts.breach(f"the run says that its last event is another: {seq}")


def _transitions_are_legal(facts: Facts) -> Iterator[Finding]:
    """I7: the ledger leads to where each row is, over transitions that there are, and a run's
    status is one that its rows bear out.
    """
    own = [event for event in facts.events if event.call_id is None]
    for wrong in impossible_steps(RUN, own, facts.run.status):
        yield facts.breach(wrong) if wrong else None
    for output in facts.outputs:
        own = [event for event in facts.events if event.data.get("turn") == output.turn]
        for wrong in impossible_steps(OUTPUT, own, output.status):
            yield facts.breach(f"the text of turn {output.turn}: {wrong}") if wrong else None
    yield from _transitions_of_calls(facts)
    yield (
        None
        if _is_proven(facts)
        else facts.breach(f"is {facts.run.status}; its rows say otherwise")
    )


def _is_proven(facts: Facts) -> bool:
    """Whether the run's rows bear out its status: "stopped" is said of proven facts only."""
    states = {call.state for call in facts.calls}
    is_driven = bool(facts.run.lease_holder)
    match facts.run.status:
        case "cancel_requested":
            return is_driven
        case "draining":
            return not is_driven and "in_flight" in states
        case "stopped_dirty":
            return not is_driven and "in_flight" not in states and "in_doubt" in states
        case "stopped_clean":
            return not is_driven and not states & {"in_flight", "in_doubt", *NOT_YET_IN_FLIGHT}
        case "completed":
            return not is_driven and states <= CALL.terminal
    return True


def _transitions_of_calls(facts: Facts) -> Iterator[Finding]:
    by_call: dict[str | None, list[LedgerEvent]] = {call.pk: [] for call in facts.calls}
    for event in facts.events:
        by_call.setdefault(event.call_id, []).append(event)
    for call in facts.calls:
        history = by_call[call.pk]
        for wrong in impossible_steps(CALL, history, call.state):
            yield facts.breach(f"call {call.pk}: {wrong}") if wrong else None
        is_marked = call.contradicted_at is not None
        if is_marked != any(event.kind == "call.contradicted" for event in history):
            yield facts.breach(f"call {call.pk}: its contradiction is not marked")


def _history_has_every_result(facts: Facts) -> Iterator[Finding]:
    """I11: in what the model is sent, each call is answered right after it, once."""
    messages = messages_of(facts.run)
    for number, message in enumerate(messages):
        asked = [part.tool_call_id for part in message.parts if part.part_kind == "tool-call"]
        following = messages[number + 1].parts if number + 1 < len(messages) else []
        answered = [part.tool_call_id for part in following if part.part_kind == "tool-return"]
        is_paired = asked == answered and len(set(asked)) == len(asked)
        yield None if is_paired else facts.breach(f"message {number}: {asked} got {answered}")


INVARIANTS = [
    Invariant("I1", "nothing starts after a stop", _nothing_starts_after_stop),
    Invariant("I2", "every effect in the world has its row", None, _every_effect_has_its_row),
    Invariant("I3", "every landed row has its effect", None, _every_landed_row_has_its_effect),
    Invariant("I4", "the groups add up", _groups_add_up),
    Invariant("I5", "one stop per epoch, with one answer", _one_stop_per_epoch),
    Invariant("I6", "the ledger is whole, and its chain verifies", _chain_verifies),
    Invariant("I7", "every transition is legal, every status proven", _transitions_are_legal),
    Invariant("I11", "every call in a history has its result", _history_has_every_result),
]
