"""R22: whatever `prepare` left outside is dropped once no call will use it."""

from agentruns.models import ToolCall
from agentruns.protocol.gate import keep_draft
from agentruns.protocol.leftovers import drop_leftovers
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew
from tools.contract import Draft


def dead_executor(steps: Steps, outside: Outside) -> ToolCall:
    """A call whose executor died after it had made its draft, and before it told anybody."""
    _run, (call,) = steps.running("test.draft")
    steps.claim(call)
    outside.drafts.add(call.request_id)
    return anew(call)


def test_the_draft_of_a_dead_executor_is_dropped_after_stop(steps: Steps, outside: Outside) -> None:
    call = dead_executor(steps, outside)
    assert drop_leftovers() == 0, "it may still be used"
    steps.stop(call.run)
    assert drop_leftovers() == 1
    assert outside.voided == {call.request_id}
    assert drop_leftovers() == 0


def test_a_frozen_call_drafts_anew_when_it_is_let_go(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.draft")
    claim = steps.claim(call)
    outside.drafts.add(call.request_id)
    assert keep_draft(claim, Draft({"key": call.request_id}))
    steps.stop(run, pending="freeze")
    assert drop_leftovers() == 1
    steps.resume(run)
    assert anew(call).draft is None


def test_what_is_in_doubt_keeps_its_draft(steps: Steps, outside: Outside) -> None:
    outside.answers["test.draft"] = "lost"
    _run, (call,) = steps.running("test.draft")
    assert steps.act(call).state == "in_doubt"
    assert drop_leftovers() == 0


def test_a_draft_of_somebody_else_is_left_alone(steps: Steps, outside: Outside) -> None:
    outside.drafts.add("req_of_another_installation")
    assert drop_leftovers() == 0
    assert outside.voided == set()
