"""Replay a ledger through a state machine: does what was recorded lead to where the row is?"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from agentruns.states import Machine, Verb
from agentruns.verify.facts import Event


class Replay:
    """One machine, ready to be replayed many times."""

    def __init__(self, machine: Machine) -> None:
        self._initial = machine.initial
        self._verbs: dict[str, list[Verb]] = defaultdict(list)
        for verb in machine.verbs.values():
            self._verbs[verb.event].append(verb)

    def impossible_steps(self, events: Iterable[Event], at_last: str) -> Iterator[str]:
        """One item per step, and one for the end: "" if it is legal, else what is wrong with it.

        Two verbs may share an event (a run stops clean or dirty), so every state is kept in mind
        that the events so far allow.
        """
        possible = {self._initial}
        for event in events:
            if event.kind not in self._verbs:
                continue
            verbs = self._verbs[event.kind]
            reached = {verb.target for verb in verbs if not possible.isdisjoint(verb.sources)}
            if not reached:
                yield f"{event.kind} (seq {event.seq}) out of {' or '.join(sorted(possible))}"
                return
            possible = reached
            yield ""
        is_there = at_last in possible
        yield "" if is_there else f"is {at_last}; its ledger says {' or '.join(sorted(possible))}"
