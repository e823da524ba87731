"""I4 and I7: every call is in one group, every transition is legal, every status is proven."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from agentruns.models import ToolCall
from agentruns.states import (
    CALL,
    GROUPS,
    NOT_LANDED,
    NOT_YET_IN_FLIGHT,
    OUTPUT,
    READY,
    RUN,
    WAITING,
)
from agentruns.verify.facts import Event, Facts, Finding
from agentruns.verify.replay import Replay

_RUN, _CALL, _OUTPUT = Replay(RUN), Replay(CALL), Replay(OUTPUT)


# Where a call may be whose items are out there: not among what failed or never started.
_WITH_ITEMS = {*READY, "in_flight", "in_doubt", "landed"}


def groups_add_up(facts: Facts) -> Iterator[Finding]:
    """I4: every call is in exactly one group, only what is done can be undone, and what is out of
    a call with items is neither hidden nor made up.
    """
    for call in facts.calls:
        state = CALL.states.get(call.state)
        if state is None or state.group not in (*GROUPS, WAITING):
            yield facts.breach(f"call {call.pk} is in no group: {call.state}")
        elif call.undo_state and call.state != "landed":
            yield facts.breach(f"call {call.pk} is {call.undo_state}, and it is {call.state}")
        else:
            yield None
    if facts.items or any(event.kind == "call.item_landed" for event in facts.events):
        yield from _items_are_those_of_the_ledger(facts)


def _items_are_those_of_the_ledger(facts: Facts) -> Iterator[Finding]:
    kept: dict[str, list[str]] = defaultdict(list)
    for item in facts.items:
        kept[item.call_id].append(item.key)
    for call in facts.calls:
        history = facts.by_call[call.pk]
        landed = [event.data["key"] for event in history if event.kind == "call.item_landed"]
        items = kept[call.pk]
        if items and call.state not in _WITH_ITEMS:
            yield facts.breach(f"call {call.pk} is {call.state}; {len(items)} of its items are out")
        elif items or landed:
            what = f"call {call.pk} has other items than its ledger"
            yield facts.unless(sorted(items) == sorted(landed), what)


def transitions_are_legal(facts: Facts) -> Iterator[Finding]:
    """I7: the ledger leads to where each row is, over transitions that there are, and a run's
    status is one that its rows bear out.
    """
    for wrong in _RUN.impossible_steps(facts.by_call[None], facts.run.status):
        yield facts.breach(wrong) if wrong else None
    yield from _of_outputs(facts)
    yield from _of_calls(facts)
    yield facts.unless(_is_proven(facts), f"is {facts.run.status}; its rows say otherwise")


def _of_outputs(facts: Facts) -> Iterator[Finding]:
    by_turn: dict[int | None, list[Event]] = defaultdict(list)
    for event in facts.by_call[None]:
        by_turn[event.data.get("turn")].append(event)
    for output in facts.outputs:
        for wrong in _OUTPUT.impossible_steps(by_turn[output.turn], output.status):
            yield facts.breach(f"the text of turn {output.turn}: {wrong}") if wrong else None


def _of_calls(facts: Facts) -> Iterator[Finding]:
    for call in facts.calls:
        history = facts.by_call[call.pk]
        for wrong in _CALL.impossible_steps(history, call.state):
            yield facts.breach(f"call {call.pk}: {wrong}") if wrong else None
        is_marked = call.contradicted_at is not None
        if is_marked != any(event.kind == "call.contradicted" for event in history):
            yield facts.breach(f"call {call.pk}: its contradiction is not marked")
        yield from _not_found_in_time(facts, history)


def _not_found_in_time(facts: Facts, history: list[Event]) -> Iterator[Finding]:
    """To find nothing ends a doubt, but not before the outside is past acting on it."""
    is_told = any("horizon_at" in e.data for e in history if e.kind == "call.in_doubt")
    for event in history:
        why = event.data.get("why" if event.kind == "call.landed" else "reason")
        if is_told and event.kind in ("call.failed", "call.landed") and why == NOT_LANDED:
            over = event.data.get("horizon_at")
            is_over = over is not None and datetime.fromisoformat(over) <= event.at
            what = f"call {event.call_id} was called not landed (seq {event.seq}) too soon"
            yield facts.unless(is_over, what)


def _is_waited_for(call: ToolCall) -> bool:
    """Whether a run drains for this call: it is out there, or a unit that has begun needs it."""
    return call.state == "in_flight" or (call.unit != "" and call.state in NOT_YET_IN_FLIGHT)


def _is_proven(facts: Facts) -> bool:
    """Whether the run's rows bear out its status: "stopped" is said of proven facts only."""
    states = {call.state for call in facts.calls}
    is_driven = bool(facts.run.lease_holder)
    match facts.run.status:
        case "cancel_requested":
            return is_driven
        case "draining":
            return not is_driven and any(map(_is_waited_for, facts.calls))
        case "stopped_dirty":
            return not is_driven and "in_flight" not in states and "in_doubt" in states
        case "stopped_clean":
            return not is_driven and not states & {"in_flight", "in_doubt", *NOT_YET_IN_FLIGHT}
        case "completed":
            return not is_driven and states <= CALL.terminal
    return True
