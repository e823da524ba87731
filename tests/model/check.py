"""Explore a scope, and say what was found in it."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from tests.model.breaks import Break
from tests.model.explore import Breach, explore
from tests.model.invariants import OF_A_STATE, OF_A_STEP
from tests.model.liveness import check_liveness, depth
from tests.model.protocol import Protocol
from tests.model.scopes import Scope
from tests.model.steps import Steps

ALL = frozenset({*OF_A_STEP, *OF_A_STATE, "I10"})


@dataclass(frozen=True)
class Found:
    """What an exploration came to. `depth`: changes of the database from Stop to settled."""

    states: int
    transitions: int
    seconds: float
    depth: int
    verbs: frozenset[tuple[str, str]]
    breach: Breach | None


@cache
def check_scope(scope: Scope) -> Found:
    """Everything that the protocol can do in the scope, against all invariants."""
    return check(Steps(Protocol(scope)), ALL)


def check_break(broken: Break) -> Found:
    """The broken protocol, against the invariant that it is said to breach."""
    return check(broken.steps(), frozenset({broken.against}))


def check(steps: Steps, invariants: frozenset[str]) -> Found:
    with _quick():
        began = time.perf_counter()
        graph = explore(steps, invariants=invariants)
        breach = graph.breach
        if breach is None and "I10" in invariants:
            breach = check_liveness(graph)
        took = time.perf_counter() - began
        longest = 0 if breach else depth(graph)
        verbs = frozenset(graph.verbs)
        return Found(len(graph.states), graph.transitions, took, longest, verbs, breach)


@contextmanager
def _quick() -> Iterator[None]:
    """States are tuples of tuples, never cyclic: to look for cycles takes a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
