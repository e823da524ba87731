"""I9: each undo has its effect at most once, in reverse order, and only for what landed; none
begins after it was stopped, and what was settled by hand has a person and a reason.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from agentruns.protocol.ledger import PERSON
from agentruns.states import CALL
from agentruns.verify.facts import Event, Facts, Finding
from agentruns.verify.replay import Replay
from compensation.states import COMPENSATION

_STEP = Replay(COMPENSATION)
LANDED = {verb.event for verb in CALL.verbs.values() if verb.target == "landed"}
UNDONE = {verb.event for verb in COMPENSATION.verbs.values() if verb.target == "undone"}
BY_HAND = ("undo.done_by_hand", "undo.left")


def undo_is_right(facts: Facts) -> Iterator[Finding]:
    """What the ledger says of each undo, and the rows of each step."""
    is_marked = any(call.undo_state for call in facts.calls)
    if not (is_marked or facts.undo_requests or any(e.kind in _OF_UNDO for e in facts.events)):
        return
    yield from _requests_are_those_of_the_ledger(facts)
    yield from _at_most_once(facts)
    yield from _only_what_landed(facts)
    yield from _in_reverse_order(facts)
    yield from _nothing_begins_once_stopped(facts)
    yield from _a_person_settles_with_a_reason(facts)
    yield from _steps_are_legal(facts)


_OF_UNDO = {"undo.requested", "call.undone", *(verb.event for verb in COMPENSATION.verbs.values())}


def _requests_are_those_of_the_ledger(facts: Facts) -> Iterator[Finding]:
    """What a person asked for is on record, with the calls that there is a step for, in order."""
    asked: dict[str, list[list[str]]] = defaultdict(list)
    for event in facts.by_call[None]:
        if event.kind == "undo.requested":
            asked[event.data["request"]].append(event.data["calls"])
    for request in facts.undo_requests:
        steps = [step for step in facts.undo_steps if step.request_id == request.pk]
        steps.sort(key=lambda step: step.position)
        is_same = asked.pop(request.pk, []) == [[step.call_id for step in steps]]
        yield facts.unless(is_same, f"{request.pk}: its steps are not what the ledger says")
    for request_id in asked:
        yield facts.breach(f"{request_id} is in the ledger, and nobody's request")


def _at_most_once(facts: Facts) -> Iterator[Finding]:
    """One undo landed per call, the mark with it, on the row too."""
    for call in facts.calls:
        times = Counter(event.kind for event in facts.by_call[call.pk])
        landed, marked = sum(times[kind] for kind in UNDONE), times["call.undone"]
        is_marked = bool(call.undo_state)
        if landed > 1 or marked > 1:
            yield facts.breach(f"call {call.pk} was undone {max(landed, marked)} times")
        elif marked > landed:
            yield facts.breach(f"call {call.pk} is marked as undone; no undo of it landed")
        elif (landed == 1, marked == 1) != (is_marked, is_marked):
            yield facts.breach(f"call {call.pk}: its undo and its mark do not agree")
        else:
            yield None


def _only_what_landed(facts: Facts) -> Iterator[Finding]:
    """No undo sets out before its call has landed, nor lands again after it has."""
    landed: set[str | None] = set()
    undone: set[str | None] = set()
    for event in facts.events:
        if event.kind in LANDED:
            landed.add(event.call_id)
        elif event.kind in ("undo.started", *UNDONE):
            is_due = event.call_id in landed and event.call_id not in undone
            what = f"{event.kind} (seq {event.seq}) of call {event.call_id}, which had not landed"
            yield facts.unless(is_due, f"{what} or was undone")
            if event.kind in UNDONE:
                undone.add(event.call_id)


def _in_reverse_order(facts: Facts) -> Iterator[Finding]:
    """The steps of one request set out in the order opposite to that in which the calls landed."""
    landed_at = {e.call_id: e.seq for e in facts.events if e.kind in LANDED}
    requests = {step.pk: step.request_id for step in facts.undo_steps}
    began: dict[str, Event] = {}
    for event in facts.events:
        if event.kind == "undo.started":
            began.setdefault(event.data["undo"], event)
    order: dict[str, list[Event]] = defaultdict(list)
    for step_id, event in began.items():
        if step_id in requests:
            order[requests[step_id]].append(event)
    for request_id, events in order.items():
        places = [landed_at.get(event.call_id, 0) for event in events]
        is_reverse = places == sorted(places, reverse=True)
        yield facts.unless(is_reverse, f"{request_id} was not carried out in reverse order")


def _nothing_begins_once_stopped(facts: Facts) -> Iterator[Finding]:
    """A step that was not under way when its undo was stopped never sets out."""
    requests = {step.pk: step.request_id for step in facts.undo_steps}
    stopped_in: dict[str, int] = {}
    for event in facts.events:
        if event.kind == "undo.stopped":
            stopped_in |= dict.fromkeys(event.data["requests"], event.seq)
        elif event.kind == "undo.started":
            seq = stopped_in.get(requests.get(event.data["undo"], ""))
            what = f"undo.started (seq {event.seq}) comes after its undo was stopped (seq {seq})"
            yield facts.unless(seq is None, what)
    for request in facts.undo_requests:
        is_same = (request.stopped_at is not None) == (request.pk in stopped_in)
        yield facts.unless(is_same, f"{request.pk}: its stop is not what the ledger says")


def _a_person_settles_with_a_reason(facts: Facts) -> Iterator[Finding]:
    """What was settled by hand: by whom and why is on the row and in the ledger."""
    told = {e.data["undo"]: e for e in facts.events if e.kind in BY_HAND}
    for step in facts.undo_steps:
        event = told.get(step.pk)
        if event is None:
            holds = step.settled_by_id is None
        else:
            is_told = event.data.get("why") == step.settled_reason != ""
            holds = is_told and event.actor.startswith(PERSON) and step.settled_by_id is not None
        yield facts.unless(holds, f"undo {step.pk}: who settled it, and why, does not agree")


def _steps_are_legal(facts: Facts) -> Iterator[Finding]:
    """Each step is where its ledger leads, and each one in the ledger is somebody's."""
    of_step: dict[str | None, list[Event]] = defaultdict(list)
    for event in facts.events:
        if event.kind in _OF_UNDO:
            of_step[event.data.get("undo")].append(event)
    of_step.pop(None, None)
    for step in facts.undo_steps:
        for wrong in _STEP.impossible_steps(of_step.pop(step.pk, []), step.state):
            yield facts.breach(f"undo {step.pk}: {wrong}") if wrong else None
    for step_id in of_step:
        yield facts.breach(f"undo {step_id} is in the ledger, and nobody's request")
