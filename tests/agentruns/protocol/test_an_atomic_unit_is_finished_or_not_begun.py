"""Protocol §9: the first step passes the gate only with all others at hand, the others in order."""

import pytest
from pytest_django.fixtures import Settings

from agentruns.protocol.gate import claim_call
from tests.agentruns.orders import ORDER, ordered, states
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, now, told
from tools.models import Tool


def test_its_steps_go_one_after_another(steps: Steps, outside: Outside) -> None:
    _run, calls = ordered(steps)

    assert [steps.act(call).state for call in calls] == ["landed"] * 3
    assert outside.effects == [(call.tool, call.request_id) for call in calls]
    assert [(call.unit, call.unit_step, call.unit_of) for call in calls] == [
        ("order:shoes", step, 3) for step in (1, 2, 3)
    ]


INCOMPLETE = {
    "a step is missing": ("test.reserve", "test.pay"),
    "the last one is missing its first": ("test.ship",),
    "in another order": ("test.pay", "test.reserve", "test.ship"),
}


@pytest.mark.parametrize("tools", INCOMPLETE.values(), ids=INCOMPLETE)
def test_what_does_not_add_up_is_not_begun(
    steps: Steps, outside: Outside, tools: tuple[str, ...]
) -> None:
    run, calls = ordered(steps, *tools)

    for call in calls:
        steps.act(call)

    assert set(states(calls)) <= {"denied", "voided"}
    assert anew(calls[0]).reason == "unit_incomplete"
    assert outside.attempts == []
    assert steps.think(run).turn == 2, "the model is told, and goes on"
    assert "ask for every step of it in one answer" in told(calls[0])


def test_a_step_that_is_there_twice_does_not_add_up_either(steps: Steps, outside: Outside) -> None:
    """It asks, as every double does; the unit waits for that, and then is not begun."""
    _run, calls = ordered(steps, *ORDER, "test.pay")
    assert claim_call(calls[0].pk, epoch=1) is None

    steps.reject(calls[3])
    steps.act(calls[0])

    assert states(calls) == ["denied", "voided", "voided", "rejected"]
    assert outside.attempts == []


def test_two_orders_are_two_units(steps: Steps, outside: Outside) -> None:
    run = steps.start()
    lease = steps.think(run)
    shoes = [steps.propose(lease, tool, "shoes") for tool in ORDER]
    hats = [steps.propose(lease, tool, "hats") for tool in ORDER[:2]]
    steps.finish(lease)

    for call in [*shoes, *hats]:
        steps.act(call)

    assert states(shoes) == ["landed"] * 3
    assert states(hats) == ["denied", "voided"]


def test_it_waits_while_one_of_its_steps_waits_for_a_person(steps: Steps, outside: Outside) -> None:
    Tool.objects.filter(name="test.ship").update(approvals_needed=1)
    run, calls = ordered(steps)

    assert (now(run).status, now(run).suspended_reason) == ("suspended", "approval")
    assert claim_call(calls[0].pk, epoch=1) is None
    assert outside.attempts == []

    steps.approve(calls[2])
    assert now(run).status == "running"
    assert [steps.act(call).state for call in calls] == ["landed"] * 3


def test_a_step_that_is_rejected_keeps_the_unit_from_beginning(
    steps: Steps, outside: Outside
) -> None:
    Tool.objects.filter(name="test.pay").update(approvals_needed=1)
    run, calls = ordered(steps)

    steps.reject(calls[1])
    for call in calls:
        steps.act(call)

    assert states(calls) == ["denied", "rejected", "voided"]
    assert [anew(call).reason for call in calls] == ["unit_incomplete", "rejected", "unit_broken"]
    assert outside.attempts == []
    assert steps.think(run).turn == 2


def test_a_step_that_failed_ends_those_after_it(steps: Steps, outside: Outside) -> None:
    outside.answers["test.pay"] = "refused"
    run, calls = ordered(steps)
    for call in calls:
        steps.act(call)

    assert states(calls) == ["landed", "failed", "voided"]
    assert anew(calls[2]).reason == "unit_broken"
    voided = events(run, "call.voided")
    assert [event.data for event in voided] == [{"was": "approved", "reason": "unit_broken"}]
    assert steps.think(run).turn == 2, "the model is told what stands, and what does not"


def test_a_step_is_tried_again_before_the_unit_is_given_up(
    steps: Steps, outside: Outside, settings: Settings
) -> None:
    settings.RETRY_BACKOFF = 0
    outside.answers["test.pay"] = ["busy"]
    _run, calls = ordered(steps)

    for call in (calls[0], calls[1], calls[1], calls[2]):
        steps.act(call)

    assert states(calls) == ["landed"] * 3


def test_a_step_in_doubt_is_waited_for(steps: Steps, outside: Outside) -> None:
    outside.answers["test.pay"] = ["lost"]
    run, calls = ordered(steps)
    for call in calls:
        steps.act(call)
    assert states(calls) == ["landed", "in_doubt", "approved"]
    assert now(run).suspended_reason == "dependency"

    steps.look_up(calls[1])

    assert steps.act(calls[2]).state == "landed"


def test_a_doubt_that_turns_out_not_to_have_happened_ends_the_unit(
    steps: Steps, outside: Outside
) -> None:
    outside.answers["test.pay"] = ["gone"]
    _run, calls = ordered(steps)
    for call in calls[:2]:
        steps.act(call)

    steps.look_up(calls[1])

    assert states(calls) == ["landed", "failed", "voided"]
