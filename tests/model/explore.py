"""Every state that can be reached, breadth first, so that the first breach has a shortest trace.

States that differ only in what cannot matter any more (whose claim a dead worker had, which of two
equal workers is which) are one: `canonical`. That makes it quick, and it is the one place where
the model could fool itself; so a test compares it with an exploration that does without.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentruns.states import CALL
from tests.model.invariants import OF_A_STATE, OF_A_STEP
from tests.model.rows import (
    DEAD,
    DRIVING,
    EXECUTING,
    FOUND,
    FREE,
    MISSING,
    Call,
    Run,
    State,
    Worker,
)
from tests.model.steps import Step, Steps

START = State(Run(), (), (Worker(), Worker()))
NOTHING_ELSE = {"under_way": 0, "effects": 0}  # of a read that nobody waits for any more
SWAPPED = {FREE: FREE, 0: 1, 1: 0, DEAD: DEAD}


@dataclass(frozen=True)
class Breach:
    """An invariant that does not hold, why, and a shortest way there."""

    invariant: str
    why: str
    trace: list[Step]


@dataclass
class Graph:
    """The reachable states, each with the one that it was reached from first, and with all
    (deed, state) that lead on from it. Complete unless there is a breach.
    """

    steps: Steps
    states: list[State] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    edges: list[list[tuple[str, int]]] = field(default_factory=list)
    verbs: set[tuple[str, str]] = field(default_factory=set)  # machine and verb, as taken
    breach: Breach | None = None

    @property
    def transitions(self) -> int:
        return sum(map(len, self.edges))

    def trace_to(self, k: int) -> list[Step]:
        """The steps to state k, with every worker under one name all along."""
        path = []
        while k:
            path.append(self.states[k])
            k = self.parents[k]
        trace: list[Step] = []
        for target in reversed(path):
            here = trace[-1].after if trace else START
            leads = (step for step in self.steps.of(here) if canonical(step.after) == target)
            trace.append(next(leads))
        return trace


def explore(steps: Steps, *, invariants: frozenset[str], merge: bool = True) -> Graph:
    """All states reachable by `steps`, or those up to the first breach of one of `invariants`."""
    of_a_step = {name: check for name, check in OF_A_STEP.items() if name in invariants}
    of_a_state = {name: check for name, check in OF_A_STATE.items() if name in invariants}
    graph = Graph(steps, [START], [0])
    known = {START: 0}
    while len(graph.edges) < len(graph.states):
        k = len(graph.edges)
        edges: list[tuple[str, int]] = []
        for step in steps.of(graph.states[k]):
            graph.verbs.update((move.machine.field, move.verb) for move in step.tx.moves)
            if breach := _first(of_a_step, step):
                way = _and_then(graph.trace_to(k), steps, of_a_step[breach[0]])
                graph.breach = Breach(*breach, way)
                return graph
            after = canonical(step.after) if merge else step.after
            target = known.setdefault(after, len(graph.states))
            edges.append((step.deed, target))
            if target == len(graph.states):
                graph.states.append(after)
                graph.parents.append(k)
                if breach := _first(of_a_state, after):
                    graph.breach = Breach(*breach, graph.trace_to(target))
                    return graph
        graph.edges.append(edges)
    return graph


def canonical(state: State) -> State:
    """The one state that stands for all those from which the same can happen."""
    run, (first, second) = state.run, state.workers
    if run.lease in (0, 1) and state.workers[run.lease].task != DRIVING:
        run = run._replace(lease=DEAD)
    calls = tuple(_canonical_call(n, call, state) for n, call in enumerate(state.calls))
    if first < second:
        return State(run, calls, state.workers)
    swapped = tuple(
        call if call.claim == FREE else call._replace(claim=SWAPPED[call.claim]) for call in calls
    )
    if first == second and calls <= swapped:
        return State(run, calls, state.workers)
    return State(run._replace(lease=SWAPPED[run.lease]), swapped, (second, first))


def _canonical_call(n: int, call: Call, state: State) -> Call:
    if call.claim != FREE and not _is_at(state.workers[call.claim], n):
        call = call._replace(claim=FREE)  # whoever had it is dead, or done with it
    if call.state not in CALL.terminal:
        return call
    is_of_now = call.turn == state.run.turn
    over = call._replace(epoch=0, attempts=0, turn=call.turn if is_of_now else 0)
    # (Whoever looks it up asks for no deadline any more.)
    if any(w.call == n and w.task not in (FOUND, MISSING) for w in state.workers):
        return over
    return over._replace(is_overdue=False, is_past=False, **(NOTHING_ELSE if call.is_read else {}))


def _is_at(worker: Worker, n: int) -> bool:
    return worker.call == n and worker.task in EXECUTING


def _first(
    checks: dict[str, Callable[[Any], str]], subject: Step | State
) -> tuple[str, str] | None:
    return next(((name, why) for name, check in checks.items() if (why := check(subject))), None)


def _and_then(trace: list[Step], steps: Steps, check: Callable[[Step], str]) -> list[Step]:
    """The trace, and the step after it that the check complains of."""
    here = trace[-1].after if trace else START
    return [*trace, next(step for step in steps.of(here) if check(step))]
