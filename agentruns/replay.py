"""Replay a ledger through a state machine: does what was recorded lead to where the row is?"""

from collections.abc import Iterable, Iterator

from agentruns.models import LedgerEvent
from agentruns.states import Machine


def impossible_steps(
    machine: Machine, events: Iterable[LedgerEvent], at_last: str
) -> Iterator[str]:
    """One item per step, and one for the end: "" if it is legal, else what is wrong with it.

    Two verbs may share an event (a run stops clean or dirty), so every state is kept in mind
    that the events so far allow.
    """
    kinds = {verb.event for verb in machine.verbs.values()}
    possible = {machine.initial}
    for event in events:
        if event.kind not in kinds:
            continue
        reached = {
            verb.target
            for verb in machine.verbs.values()
            if verb.event == event.kind and possible.intersection(verb.sources)
        }
        if not reached:
            yield f"{event.kind} (seq {event.seq}) out of {' or '.join(sorted(possible))}"
            return
        possible = reached
        yield ""
    is_there = at_last in possible
    yield "" if is_there else f"is {at_last}; its ledger says {' or '.join(sorted(possible))}"
