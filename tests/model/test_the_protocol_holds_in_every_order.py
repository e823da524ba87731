"""Two workers, a driver, a sweeper, people, and an outside that does as it likes: in whatever order
they act, wherever they die, I1 to I5, I7 and I10 hold (C4, C6, C8, A4, A14, B1, B3, H1, H5).
"""

import pytest

from agentruns.states import CALL, OUTPUT, RUN
from tests.model.check import check_scope
from tests.model.deeds import told
from tests.model.scopes import SCOPES, Scope

# A call of which some items are out lands with those: the model's calls have no items.
NOT_MODELLED = {("state", "conclude")}


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.name)
def test_no_order_of_steps_breaches_an_invariant(scope: Scope) -> None:
    found = check_scope(scope)
    assert found.breach is None, told(found.breach)
    assert found.states > 1000


def test_every_transition_that_is_declared_was_taken() -> None:
    taken = frozenset[tuple[str, str]]().union(*(check_scope(scope).verbs for scope in SCOPES))
    run_and_calls = {(m.field, verb) for m in (RUN, CALL) for verb in m.verbs}
    declared = run_and_calls | {(OUTPUT.field, verb) for verb in OUTPUT.verbs}
    assert declared - taken == NOT_MODELLED
