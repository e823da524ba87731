"""R22: whatever `prepare` left outside is dropped once no call will use it."""

from agentruns.models import ToolCall
from agentruns.protocol.gate import keep_draft, pass_gate
from agentruns.protocol.leftovers import drop_leftovers, set_drafts_aside
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


def drafted(steps: Steps, outside: Outside) -> ToolCall:
    """A call whose draft was made while its run was being paused."""
    run, (call,) = steps.running("test.draft")
    claim = steps.claim(call)
    outside.drafts.add(call.request_id)
    assert keep_draft(claim, Draft({"key": call.request_id}))
    steps.pause(run)
    assert not pass_gate(claim)
    return anew(call)


def test_the_draft_of_a_paused_call_is_set_aside_and_made_anew(
    steps: Steps, outside: Outside
) -> None:
    call = drafted(steps, outside)
    assert set_drafts_aside() == 1
    assert outside.voided == {call.request_id}
    assert (anew(call).state, anew(call).draft) == ("prepared", None)
    assert set_drafts_aside() == 0

    steps.unpause(call.run)
    assert steps.act(call).state == "landed"
    assert outside.effects == [("test.draft", call.request_id)]


def test_the_draft_of_a_call_that_may_go_stays(steps: Steps, outside: Outside) -> None:
    call = drafted(steps, outside)
    steps.unpause(call.run)
    assert set_drafts_aside() == 0
    assert anew(call).draft == {"key": call.request_id}
