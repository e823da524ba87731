"""A few walks through the model that between them meet as many situations as possible."""

import random
from collections.abc import Iterator
from functools import cache

from tests.model.explore import START
from tests.model.protocol import Protocol
from tests.model.scopes import Scope
from tests.model.steps import Step, Steps

CANDIDATES, LENGTH = 500, 40
RARE = {"dies": 0.2, "break": 0.4, "vanishes": 0.3, "give_back": 3.0, "propose": 3.0, "finish": 2.0}
RARE |= dict.fromkeys(("stop", "stop_freeze"), 0.15) | {"pause": 0.3, "failed": 0.5}

Walk = list[Step]
Situation = tuple[str, str, str]


@cache
def walks(scope: Scope, count: int) -> list[Walk]:
    """The same ones each time: of many at random, each chosen for what it adds to the others."""
    rng = random.Random(scope.name)
    steps = Steps(Protocol(scope))
    candidates = [list(_walk(steps, rng)) for _ in range(CANDIDATES)]
    met_in = [situations(walk) for walk in candidates]
    chosen: list[Walk] = []
    met: set[Situation] = set()
    for _ in range(count):
        best = max(range(CANDIDATES), key=lambda k: _new(met_in[k], met))
        chosen.append(candidates[best])
        met |= met_in[best]
    return chosen


def situations(walk: Walk) -> set[Situation]:
    """What was done, with the run and the call in which state."""
    return {(step.deed, step.before.run.status, _state_of_call(step)) for step in walk}


def _new(met_there: set[Situation], met: set[Situation]) -> int:
    """A deed that was not done at all before is worth a few situations."""
    new_deeds = {deed for deed, *_ in met_there} - {deed for deed, *_ in met}
    return len(met_there - met) + 5 * len(new_deeds)


def _state_of_call(step: Step) -> str:
    is_there = 0 <= step.n < len(step.before.calls)
    return step.before.calls[step.n].state if is_there else ""


def _walk(steps: Steps, rng: random.Random) -> Iterator[Step]:
    here = START
    for _ in range(LENGTH):
        choices = list(steps.of(here))
        [step] = rng.choices(choices, [RARE.get(choice.deed, 1.0) for choice in choices])
        yield step
        here = step.after
