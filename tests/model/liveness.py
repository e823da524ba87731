"""I10: after a stop a run settles, even with every worker dead. And nobody is ever stuck.

A deadline in seconds cannot be checked where there is no clock. What can be:

1. **What changes in a stopping run never changes back.** Seen through the database alone (the
   run's row, its calls' states and attempts), the steps of a stopping run form a graph without a
   cycle, whoever takes them. So together they change it a bounded number of times: `depth`.
2. **As long as it has not settled, the sweeper alone can change it.** In every stopping state there
   is a step of the sweeper that changes the database, and needs no worker and no message; or there
   will be, once what was sent has arrived or got lost, and the call's own deadline is over.

From 1 and 2: a sweeper that gets its turn again and again settles the run after at most `depth`
changes, whatever dead, slow or stubborn workers do or do not do. The seconds are then those of
the deadlines that the sweeper waits for (the lease's, the drain's) and of its own interval.

3. **Nobody is stuck.** From every state, stopped or not, some way leads to an end without anyone
   pressing Stop. That takes workers and people, but never a particular one, and never luck: no
   state is a dead end, so whoever looks again (the sweeper rings for it) finds something to do.
"""

from graphlib import CycleError, TopologicalSorter

from agentruns.states import FINISHED_RUN, STOPPING_RUN
from tests.model.explore import Breach, Graph
from tests.model.rows import STOPPED_CLEAN, Run, State

ENDED = (*FINISHED_RUN, STOPPED_CLEAN)
IN_TIME = (
    "arrives",
    "vanishes",
    "refuses",
    "overdue",
    "horizon",
)  # one after the other; then no more
SETBACKS = ("stop", "stop_freeze", "pause", "dies")

Rows = tuple[Run, tuple[tuple[str, int], ...]]


def check_liveness(graph: Graph) -> Breach | None:
    """A stopping run settles by the sweeper alone, whatever workers do; and nobody is ever stuck.

    Returns the breach that can be reached in the fewest steps, if there is one.
    """
    for k, state in enumerate(graph.states):
        if is_stopping(state) and not sweeper_helps(graph, k):
            return Breach("I10", "no sweeper can get it from here to its end", graph.trace_to(k))
    try:
        depth(graph)
    except CycleError as error:
        k = next(k for k, state in enumerate(graph.states) if rows(state) in error.args[1])
        return Breach("I10", "it can go round in circles from here", graph.trace_to(k))
    if (k := first_stuck(graph)) is not None:
        return Breach("I10", "no way leads from here to an end", graph.trace_to(k))
    return None


def is_stopping(state: State) -> bool:
    return state.run.status in STOPPING_RUN


def rows(state: State) -> Rows:
    """What the database has of it."""
    run = state.run._replace(lease=min(state.run.lease, 0))  # whoever it is that holds it
    return run, tuple((call.state, call.attempts) for call in state.calls)


def sweeper_helps(graph: Graph, k: int) -> bool:
    """Whether the sweeper can change something here, or will be able to, however the outside and
    the clock go on.
    """
    here = rows(graph.states[k])
    sweeps = (target for deed, target in graph.edges[k] if deed.startswith("sweep"))
    if any(rows(graph.states[target]) != here for target in sweeps):
        return True
    later = [target for deed, target in graph.edges[k] if deed in IN_TIME]
    return bool(later) and all(sweeper_helps(graph, target) for target in later)


def depth(graph: Graph) -> int:
    """How many changes of the database there can be from Stop to settled. Raises CycleError."""
    before: dict[Rows, set[Rows]] = {}
    for k, state in enumerate(graph.states):
        if is_stopping(state):
            for _deed, target in graph.edges[k]:
                after = rows(graph.states[target])
                if after != rows(state):
                    before.setdefault(after, set()).add(rows(state))
    longest: dict[Rows, int] = {}
    for each in TopologicalSorter(before).static_order():
        longest[each] = max((longest[b] + 1 for b in before.get(each, ())), default=0)
    return max(longest.values(), default=0)


def first_stuck(graph: Graph) -> int | None:
    """The first state that no way leads out of, to an end."""
    leads_to: list[list[int]] = [[] for _ in graph.states]
    for k, edges in enumerate(graph.edges):
        for deed, target in edges:
            if deed not in SETBACKS:
                leads_to[target].append(k)
    reached = {k for k, state in enumerate(graph.states) if state.run.status in ENDED}
    todo = list(reached)
    while todo:
        for k in leads_to[todo.pop()]:
            if k not in reached:
                reached.add(k)
                todo.append(k)
    return next((k for k in range(len(graph.states)) if k not in reached), None)
