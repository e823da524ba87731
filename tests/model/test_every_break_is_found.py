"""Each guard that the protocol rests on is missed when it is gone, and the trace shows why."""

import pytest

from tests.model.breaks import BREAKS, SECOND_DOORS, Break
from tests.model.check import check_break
from tests.model.deeds import told
from tests.model.explore import START


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.name)
def test_a_break_is_found_with_a_trace_that_leads_there(broken: Break) -> None:
    breach = check_break(broken).breach
    assert breach is not None
    assert breach.invariant == broken.against
    befores = [step.before for step in breach.trace]
    assert befores == [START, *(step.after for step in breach.trace[:-1])]
    assert told(breach).startswith(f"{broken.against} does not hold: ")


@pytest.mark.parametrize("broken", SECOND_DOORS, ids=lambda broken: broken.name)
def test_where_two_guards_stand_behind_each_other_one_is_enough(broken: Break) -> None:
    assert check_break(broken).breach is None
