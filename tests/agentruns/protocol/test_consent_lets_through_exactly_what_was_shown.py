"""I12: consent holds for one digest, once, until it expires, while the run may still act."""

from collections.abc import Callable

import pytest

from agentruns.errors import WrongState
from agentruns.models import ToolCall
from agentruns.protocol.gate import pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, kinds, now, pass_time, told
from tests.forging import rewrite
from tools.models import Tool


def test_an_irreversible_call_waits_until_somebody_approves_it(
    steps: Steps, outside: Outside
) -> None:
    run, (call,) = steps.running("test.send")
    assert (call.state, now(run).status) == ("awaiting_approval", "suspended")
    assert now(run).suspended_reason == "approval"
    assert steps.act(call).state == "awaiting_approval"

    steps.approve(call)
    assert now(run).status == "running"
    landed = steps.act(call)

    assert landed.state == "landed"
    assert landed.consent_by == steps.owner
    assert landed.consent_used_at is not None
    assert outside.effects == [("test.send", call.request_id)]


BROKEN: dict[str, Callable[[ToolCall], object]] = {
    "D3: other arguments than were shown": lambda call: rewrite(
        ToolCall.objects.all(), consent_digest="f" * 64
    ),
    "D7: used already": lambda call: rewrite(
        ToolCall.objects.all(), consent_used_at=call.proposed_at
    ),
    "run out since": lambda call: pass_time(call),
    "no consent at all": lambda call: rewrite(ToolCall.objects.all(), consent_digest=""),
}


@pytest.mark.breaks_ledger
@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_the_gate_refuses_a_consent_that_does_not_hold(
    steps: Steps, change: Callable[[ToolCall], object]
) -> None:
    _run, (call,) = steps.running("test.send")
    steps.approve(call)
    claim = steps.claim(call)
    change(call)

    assert pass_gate(claim) is False
    assert (anew(call).state, anew(call).reason) == ("denied", "needs_consent")


def test_a_consent_to_other_arguments_is_not_taken(steps: Steps) -> None:
    _run, (call,) = steps.running("test.send")

    with pytest.raises(WrongState):
        steps.approve(call, digest="0" * 64)

    assert anew(call).state == "awaiting_approval"


def test_a_rejected_call_never_executes(steps: Steps, outside: Outside) -> None:
    """D5."""
    run, (call,) = steps.running("test.send")

    steps.reject(call, "too early")
    steps.act(call)

    assert anew(call).state == "rejected"
    assert outside.attempts == []
    assert told(call) == "Not executed: a person rejected it. too early"
    assert steps.think(run).turn == 2, "the model is told, and goes on"


def test_three_calls_of_one_turn_go_each_as_decided(steps: Steps, outside: Outside) -> None:
    """D6, D16: each asks for itself, also those that could go in parallel."""
    run, calls = steps.running("test.send", "test.send", "test.send")
    assert [call.state for call in calls] == ["awaiting_approval"] * 3

    steps.approve(calls[2])
    steps.reject(calls[1])
    assert steps.act(calls[2]).state == "approved", "an earlier one is still open"
    steps.approve(calls[0])
    states = [steps.act(call).state for call in calls]

    assert states == ["landed", "rejected", "landed"]
    assert [key for _tool, key in outside.effects] == [calls[0].request_id, calls[2].request_id]
    assert now(run).status == "running"


def test_the_same_question_is_answered_once(steps: Steps) -> None:
    """D11."""
    _run, (call,) = steps.running("test.send")
    steps.approve(call)

    with pytest.raises(WrongState):
        steps.reject(call)
    with pytest.raises(WrongState):
        steps.approve(call)

    assert anew(call).state == "approved"


def test_stop_withdraws_what_waits_for_approval(steps: Steps, outside: Outside) -> None:
    """D12: and a late click is refused, with the reason."""
    run, (call,) = steps.running("test.send")

    steps.stop(run)

    assert now(run).status == "stopped_clean"
    assert (anew(call).state, anew(call).reason) == ("voided", "approval_withdrawn")
    with pytest.raises(WrongState) as refused:
        steps.approve(call)
    assert refused.value.data == {"state": "voided", "reason": "approval_withdrawn"}
    steps.act(call)
    assert outside.attempts == []


def test_a_question_that_nobody_answers_runs_out(steps: Steps) -> None:
    run, (call,) = steps.running("test.send")
    assert steps.sweep()["approvals"] == 0
    pass_time(call)

    with pytest.raises(WrongState):
        steps.approve(call)
    assert steps.sweep()["approvals"] == 1

    assert anew(call).state == "expired"
    assert kinds(run)[-2:] == ["call.expired", "run.resumed"]
    assert steps.think(run).turn == 2


def test_consent_holds_as_long_from_the_answer_as_the_question_did(
    steps: Steps, outside: Outside
) -> None:
    """A draft that is held for minutes still goes out on an answer that came late."""
    _run, (call,) = steps.running("test.send")
    pass_time(call, hours=0.2)  # of the quarter of an hour
    approved = steps.approve(call)
    assert approved.consent_expires_at is not None
    assert call.consent_expires_at is not None
    assert approved.consent_expires_at > call.consent_expires_at
    pass_time(call, hours=0.2)
    assert steps.act(call).state == "landed"


def test_consent_that_ran_out_lets_nothing_through(steps: Steps, outside: Outside) -> None:
    _run, (call,) = steps.running("test.send")
    steps.approve(call)
    pass_time(call)
    assert (steps.act(call).state, anew(call).reason) == ("denied", "needs_consent")
    assert outside.attempts == []


def test_an_admin_can_have_any_tool_ask(steps: Steps) -> None:
    Tool.objects.filter(name="test.book").update(approvals_needed=1)

    _run, (call,) = steps.running("test.book")

    assert call.state == "awaiting_approval"


def test_an_admin_can_have_a_read_ask_too(steps: Steps, outside: Outside) -> None:
    """It would be refused if it went out at once."""
    Tool.objects.filter(name="test.note").update(approvals_needed=1)

    _run, (call,) = steps.running("test.note")
    assert call.state == "awaiting_approval"
    steps.approve(call)

    assert steps.act(call).state == "landed"


def test_a_call_that_needed_consent_when_it_was_proposed_needs_it_still(steps: Steps) -> None:
    """The stricter of the tier then and the tier now decides, also after an admin eased it."""
    Tool.objects.filter(name="test.book").update(tier="irreversible")
    _run, (call,) = steps.running("test.book")
    steps.approve(call)
    claim = steps.claim(call)
    Tool.objects.filter(name="test.book").update(tier="reversible")
    pass_time(call)

    assert pass_gate(claim) is False
    assert anew(call).reason == "needs_consent"
