"""Protocol §8, C7: “it did not happen” is an answer only when nothing can be under way any more.
`python -m tests.model --break lookup-believed-too-soon` shows what would happen else.
"""

from datetime import timedelta

import pytest
from django.conf import settings

from agentruns.models import ToolCall
from agentruns.protocol.doubt import ask_again, begin_lookup, record_lookup
from agentruns.protocol.execute import context_of, look_up_call
from agentruns.protocol.gate import pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now, pass_time
from tools.contract import NotLanded

PATIENCE = timedelta(seconds=settings.LOOKUP_PATIENCE)


@pytest.fixture
def call(steps: Steps) -> ToolCall:
    """Let through, then stopped; the drain's time is over, and the call's own is not."""
    run, (call,) = steps.running("test.book")
    assert pass_gate(steps.claim(call))
    steps.stop(run)
    pass_time(now(run))
    steps.sweep()
    assert (anew(call).state, anew(call).reason) == ("in_doubt", "no_report")
    return anew(call)


def _as_if_in_doubt_for(call: ToolCall, time: timedelta) -> None:
    assert call.doubted_at is not None
    ToolCall.objects.filter(pk=call.pk).update(doubted_at=call.doubted_at - time)
    ask_again(call.pk)


def test_the_drain_may_be_over_while_the_executor_still_sends(
    steps: Steps, outside: Outside, call: ToolCall
) -> None:
    _as_if_in_doubt_for(call, 2 * PATIENCE)

    look_up_call(call.pk)

    assert call.deadline_at is not None
    assert anew(call).state == "in_doubt"
    assert anew(call).next_lookup_at == call.deadline_at + PATIENCE
    outside.act("test.book", context_of(call))  # it arrives, and the executor dies
    assert steps.look_up(call).state == "landed"
    assert now(call.run).status == "stopped_clean"


def test_an_answer_is_as_old_as_its_question(call: ToolCall) -> None:
    ask_again(call.pk)
    assert begin_lookup(call.pk) is not None
    pass_time(call)

    record_lookup(call.pk, NotLanded())

    assert anew(call).state == "in_doubt"


def test_once_all_is_settled_it_is_believed(steps: Steps, call: ToolCall) -> None:
    assert steps.look_up(call).state == "failed"
    assert now(call.run).status == "stopped_clean"
