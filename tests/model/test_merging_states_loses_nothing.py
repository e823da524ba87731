"""The exploration takes states for one from which the same can happen. Without that it finds the
same ones, only more of each.
"""

import pytest

from tests.model.explore import canonical, explore
from tests.model.protocol import Protocol
from tests.model.scopes import ANSWERS, EFFECTS, READ_AND_EFFECT, Scope
from tests.model.steps import Steps

SMALL = (ANSWERS, EFFECTS._replace(turns=1), READ_AND_EFFECT._replace(turns=1, attempts=1))


@pytest.mark.parametrize("scope", SMALL, ids=lambda scope: scope.name)
def test_merged_or_not_the_same_states_are_reached(scope: Scope) -> None:
    steps = Steps(Protocol(scope))
    merged = explore(steps, invariants=frozenset())
    apart = explore(steps, invariants=frozenset(), merge=False)
    assert {canonical(state) for state in apart.states} == set(merged.states)
    assert len(apart.states) > 2 * len(merged.states)
