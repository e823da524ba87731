"""I1, I5 and I10: nothing starts after a stop, each stop is one, and each comes to rest in time."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TypeAlias

from django.conf import settings

from agentruns.models import StopRequest, ToolCall
from agentruns.protocol.ledger import EXECUTOR
from agentruns.protocol.units import BEGUN
from agentruns.states import CALL, STOPPED_RUN, STOPPING_RUN
from agentruns.verify.facts import Event, Facts, Finding

# How long the sweeper may take to settle what is due, and to catch up after it was away.
GRACE = timedelta(seconds=10)

_STATE_AFTER = {verb.event: verb.target for verb in CALL.verbs.values()}
Unit: TypeAlias = tuple[int, str]  # its turn and its name


def nothing_starts_after_stop(facts: Facts) -> Iterator[Finding]:
    """I1. A run that was resumed has a newer epoch than its stop.

    After a stop a call may pass the gate only to finish a unit that had begun.
    """
    calls = {call.pk: call for call in facts.calls}
    states: dict[str, str] = {}
    stopped_in, begun = 0, set[Unit]()
    for event in facts.events:
        if event.kind == "stop.requested":
            stopped_in = max(stopped_in, event.data["epoch"])
            begun = {_unit(calls[pk]) for pk in states if pk in calls and states[pk] in BEGUN}
        elif event.kind == "call.commit_allowed":
            yield _finding_of_gate(facts, event, calls, stopped_in, begun)
        if event.call_id and event.kind in _STATE_AFTER:
            states[event.call_id] = _STATE_AFTER[event.kind]
    if facts.items:
        yield from _no_item_follows_a_stop(facts, calls)


def _no_item_follows_a_stop(facts: Facts, calls: dict[str, ToolCall]) -> Iterator[Finding]:
    """A call that was out with many items ends with the one that it was at, unless nothing may
    interrupt it. What a look-up brings to light later was out before.
    """
    since_stop: Counter[str | None] | None = None
    for event in facts.events:
        if event.kind == "stop.requested":
            since_stop = Counter()
        elif event.kind == "run.requeued":
            since_stop = None
        elif event.kind == "call.item_landed" and event.actor == EXECUTOR:
            call = calls.get(event.call_id or "")
            if since_stop is not None and not (call and call.is_uninterruptible):
                since_stop[event.call_id] += 1
                what = f"call {event.call_id} went on to another item (seq {event.seq})"
                yield facts.unless(since_stop[event.call_id] == 1, f"{what} after the stop")


def _unit(call: ToolCall) -> Unit:
    return call.turn, call.unit


def _finding_of_gate(
    facts: Facts, event: Event, calls: dict[str, ToolCall], stopped_in: int, begun: set[Unit]
) -> Finding:
    if event.data.get("epoch", 0) > stopped_in:
        return None
    what = f"call {event.call_id} passed the gate (seq {event.seq}) after the stop"
    if not event.data.get("finishes_unit"):
        return facts.breach(what)
    call = calls.get(event.call_id or "")
    has_begun = call is not None and call.unit != "" and _unit(call) in begun
    return facts.unless(has_begun, f"{what}, and finishes nothing that had begun")


def one_stop_per_epoch(facts: Facts) -> Iterator[Finding]:
    """I5: a StopRequest, its event, its answer and the run's epoch belong together."""
    asked = Counter(e.data["epoch"] for e in facts.by_call[None] if e.kind == "stop.requested")
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
    yield from _epochs_only_grow(facts)
    if facts.run.status in (*STOPPING_RUN, *STOPPED_RUN):
        is_asked = any(stop.epoch == facts.run.epoch for stop in facts.stops)
        yield facts.unless(is_asked, f"is {facts.run.status}; nobody asked for it")


def _epochs_only_grow(facts: Facts) -> Iterator[Finding]:
    """Each stop, and each time that the run is taken up again, is a step of the epoch."""
    before = 1
    for event in facts.by_call[None]:
        if event.kind in ("stop.requested", "run.requeued"):
            epoch = event.data.get("epoch", 0)
            is_step = before < epoch <= facts.run.epoch
            yield facts.unless(
                is_step, f"{event.kind} (seq {event.seq}) of epoch {epoch} is no step"
            )
            before = epoch


def each_stop_settles(facts: Facts) -> Iterator[Finding]:
    """I10, as far as a ledger can show it.

    That nobody settled a run in time is a breach only if a sweeper is known to have been at work
    while it was due: the database, or all who work on it, may have been away.
    """
    at_rest = _settled_at(facts)
    for stop in facts.stops:
        if stop.won_by != StopRequest.WonBy.STOP:
            continue
        settled = at_rest.get(stop.epoch)
        due = _due(facts, stop)
        since = settled or facts.now
        if (stop.settled_at is None) != (settled is None):
            yield facts.breach(f"the stop of epoch {stop.epoch} and its ledger differ on its end")
        elif since - due > GRACE and facts.sweeps.seen_between(due, since - GRACE):
            late = f"came to rest {_seconds(since - due)} s late"
            late = late if settled else f"has not come to rest, {_seconds(since - due)} s late"
            yield facts.breach(f"the stop of epoch {stop.epoch} {late}")
        else:
            yield None


def _settled_at(facts: Facts) -> dict[int, datetime]:
    """When the run came to rest after the stop of each epoch, by the ledger."""
    found: dict[int, datetime] = {}
    epoch = 0
    for event in facts.by_call[None]:
        if event.kind == "stop.requested":
            epoch = event.data["epoch"]
        elif event.kind == "run.stopped":
            found[epoch] = event.at
    return found


def _due(facts: Facts, stop: StopRequest) -> datetime:
    """By when the sweeper finds the run to be settled: the drain deadline, or that of a call which
    may use all of its own time; a driver that died meanwhile has its lease taken away.
    """
    promised = stop.answer.get("waits_for", {}).get("until")
    at_last = datetime.fromisoformat(promised) if promised else stop.no_new_effect_at
    own = [
        call.deadline_at
        for call in facts.calls
        if call.outlasts_drain and call.deadline_at is not None
    ]
    driver = stop.requested_at + timedelta(seconds=settings.LEASE_TTL)
    return max(at_last, driver, *own)


def _seconds(late: timedelta) -> int:
    return round(late.total_seconds())
