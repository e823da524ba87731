"""I11: calls and results find each other by a name. Some providers give it twice, or none."""

import pytest
from pydantic_ai.messages import ToolCallPart, ToolReturnPart

from agentruns.planner.history import messages_of
from agentruns.protocol.turn import Proposal, propose_call
from tests.agentruns.steps import Steps, anew, now


@pytest.mark.parametrize("given", ["same", "", "x" * 300])
def test_calls_of_one_turn_and_of_the_next_are_told_apart(steps: Steps, given: str) -> None:
    run = steps.start()
    for _turn in range(2):
        lease = steps.think(run)
        for what in ("one", "two"):
            proposal = Proposal("test.note", f'{{"what": "{what}"}}', given, offset=10)
            call = propose_call(lease, proposal)
            assert call is not None
            steps.act(anew(call))
        assert steps.finish(lease)

    parts = [part for message in messages_of(now(run)) for part in message.parts]
    asked = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
    answered = [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)]
    assert len(set(asked)) == 4
    assert asked == answered


def test_a_name_that_is_given_once_is_kept(steps: Steps) -> None:
    lease = steps.think(steps.start())
    assert steps.propose(lease, "test.note").provider_call_id == "provider_1"
