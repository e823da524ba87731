"""R32: what an admin tightens holds at once for every call that has not gone yet."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, User

from agentruns.models import Run, ToolCall
from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.ledger import person
from agentruns.protocol.recheck import Rechecked, recheck_tool
from tests.agentruns.orders import ordered, states
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, kinds, now, told
from tests.pausing import Pauses, at_once, in_background
from tools.changes import change_tools
from tools.models import Tool


@pytest.fixture
def tighten(admin: User) -> Callable[..., Rechecked]:
    """What the admin's page does: change the row, then hold what waits against it."""

    def change(tool: str, **values: object) -> Rechecked:
        change_tools([tool], by=admin, reason="New rules.", **values)
        return recheck_tool(tool, by=admin)

    return change


Tighten = Callable[..., Rechecked]


def test_a_tool_switched_off_is_refused_to_every_run_at_once(
    steps: Steps, outside: Outside, tighten: Tighten, admin: User
) -> None:
    first, (one,) = steps.running("test.book")
    second, (asking, other) = steps.running("test.book", "test.post")

    assert tighten("test.book", enabled=False) == Rechecked(denied=2)

    assert [(anew(c).state, anew(c).reason) for c in (one, asking)] == [
        ("denied", "tool_disabled")
    ] * 2
    assert anew(other).state == "approved"
    assert [event.actor for event in events(first, "call.denied")] == [person(admin)]
    assert (now(first).status, now(second).status) == ("running", "running")
    assert steps.act(other).state == "landed", "the next one goes on"


def test_a_tool_switched_off_meanwhile_asks_nobody(steps: Steps, outside: Outside) -> None:
    """It was switched off while the answer streamed: what it asks for is denied at its end."""
    run = steps.start()
    lease = steps.think(run)
    asking, free = steps.propose(lease, "test.send"), steps.propose(lease, "test.book", "another")
    Tool.objects.filter(name__in=["test.send", "test.book"]).update(enabled=False)

    assert steps.finish(lease)

    assert [(anew(c).state, anew(c).reason) for c in (asking, free)] == [
        ("denied", "tool_disabled")
    ] * 2
    assert events(run, "call.approval_requested") == []
    assert now(run).status == "running", "the model is told, and goes on"


def test_a_tool_that_the_run_may_not_use_asks_nobody(steps: Steps, outside: Outside) -> None:
    steps.agent.tools = ["test.book"]
    steps.agent.save()
    _run, (call,) = steps.running("test.send")
    assert (call.state, call.reason) == ("denied", "grant_does_not_cover")


def test_the_steps_after_a_denied_one_are_not_asked_about(steps: Steps, outside: Outside) -> None:
    Tool.objects.filter(name="test.pay").update(enabled=False)
    run = steps.start()
    lease = steps.think(run)
    calls = [steps.propose(lease, f"test.{name}") for name in ("reserve", "pay", "ship")]

    assert steps.finish(lease)

    states = [(anew(call).state, anew(call).reason) for call in calls]
    assert states[1:] == [("denied", "tool_disabled"), ("voided", "unit_broken")]


def test_what_needs_consent_now_and_has_none_is_refused_and_may_be_asked_for_again(
    steps: Steps, outside: Outside, tighten: Tighten
) -> None:
    run, (call,) = steps.running("test.book")

    assert tighten("test.book", tier="irreversible") == Rechecked(denied=1)

    assert (anew(call).state, anew(call).reason) == ("denied", "needs_consent")
    assert told(call) == (
        "Not executed: by the rules as they are now, a person has to approve it, and nobody has. "
        "You may ask for it again: then somebody is asked."
    )
    (again,) = steps.turn(run, "test.book")
    assert again.state == "awaiting_approval"
    assert outside.attempts == []


def test_a_call_that_waits_for_approval_waits_for_more_people(
    steps: Steps, reviewer: User, tighten: Tighten
) -> None:
    run, (call,) = steps.running("test.send")

    assert tighten("test.send", approvals_needed=2) == Rechecked(raised=1)
    assert tighten("test.send", approvals_needed=2) == Rechecked()
    assert steps.approve(call).state == "awaiting_approval"
    assert steps.approve(call, by=reviewer).state == "approved"

    assert [event.data for event in events(run, "call.approvals_raised")] == [
        {"given": 0, "needed": 2}
    ]


def test_one_approval_is_not_two(steps: Steps, tighten: Tighten) -> None:
    _run, (call,) = steps.running("test.send")
    steps.approve(call)

    assert tighten("test.send", approvals_needed=2) == Rechecked(denied=1)

    assert anew(call).reason == "needs_consent"


def test_an_approval_by_somebody_who_has_no_say_any_more_does_not_hold(
    steps: Steps, tighten: Tighten
) -> None:
    group = Group.objects.create(name="Finance")
    _run, (call, waiting) = steps.running("test.send", "test.send")
    tighten("test.send", approvals_needed=2)
    steps.approve(waiting)
    tighten("test.send", approvals_needed=1)
    steps.approve(call)
    assert anew(call).state == "awaiting_approval", "the stricter of then and now"

    assert tighten("test.send", approver_group=group) == Rechecked(raised=2)
    assert [anew(c).consent_count for c in (call, waiting)] == [0, 0]


def test_an_approved_call_of_a_stranger_to_the_group_is_refused(
    steps: Steps, reviewer: User, tighten: Tighten
) -> None:
    group = Group.objects.create(name="Finance")
    reviewer.groups.add(group)
    _run, (call, other) = steps.running("test.send", "test.send")
    steps.approve(call)
    steps.approve(other, by=reviewer)

    assert tighten("test.send", approver_group=group) == Rechecked(denied=1)

    assert [anew(c).state for c in (call, other)] == ["denied", "approved"]


def test_the_gate_asks_whose_word_it_was_if_the_run_was_too_busy_to_be_rechecked(
    steps: Steps, reviewer: User, outside: Outside
) -> None:
    group = Group.objects.create(name="Finance")
    reviewer.groups.add(group)
    _run, (call, other) = steps.running("test.send", "test.send")
    steps.approve(call)
    steps.approve(other, by=reviewer)

    Tool.objects.filter(name="test.send").update(approver_group=group)

    assert (steps.act(call).state, anew(call).reason) == ("denied", "needs_consent")
    assert steps.act(other).state == "landed"


def test_what_has_not_been_asked_for_yet_is_asked_at_its_time(
    steps: Steps, tighten: Tighten
) -> None:
    """The answer is still being written."""
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.book")

    assert tighten("test.book", approvals_needed=1) == Rechecked()
    steps.finish(lease)

    assert anew(call).state == "awaiting_approval"


def test_easing_a_rule_changes_nothing_that_waits(steps: Steps, tighten: Tighten) -> None:
    tighten("test.book", approvals_needed=1)
    _run, (call,) = steps.running("test.book")

    assert tighten("test.book", approvals_needed=0) == Rechecked()

    assert anew(call).state == "awaiting_approval"


def test_a_refused_step_ends_the_steps_after_it(steps: Steps, tighten: Tighten) -> None:
    _run, calls = ordered(steps)

    tighten("test.pay", enabled=False)

    assert states(calls) == ["approved", "denied", "voided"]


def _frozen(steps: Steps) -> tuple[Run, ToolCall]:
    run, (call,) = steps.running("test.book")
    steps.stop(run, pending="freeze")
    return now(run), call


def test_what_a_stop_has_frozen_is_left_as_it_is(steps: Steps, tighten: Tighten) -> None:
    run, call = _frozen(steps)
    before = kinds(run)

    assert tighten("test.book", enabled=False) == Rechecked()

    assert (anew(call).state, kinds(run)) == ("frozen", before)


def test_what_is_under_way_is_left_alone(steps: Steps, tighten: Tighten) -> None:
    _run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    assert pass_gate(claim)

    assert tighten("test.book", enabled=False) == Rechecked()

    steps.land(claim)
    assert anew(call).state == "landed"


@pytest.mark.parametrize("point", ["call:1:claimed", "call:1:prepared"])
def test_an_executor_that_has_it_sends_nothing_and_drops_its_draft(
    steps: Steps, outside: Outside, pauses: Pauses, tighten: Tighten, point: str
) -> None:
    run, (call,) = steps.running("test.draft")
    held = pauses.hold(run.pk, point)
    with in_background(execute_call, call.pk, epoch=1) as executor:
        held.wait()
        assert tighten("test.draft", enabled=False) == Rechecked(denied=1)
        held.release()
        executor.result()

    assert (anew(call).state, anew(call).reason) == ("denied", "tool_disabled")
    assert outside.effects == []
    assert outside.drafts == outside.voided


def test_past_the_gate_it_goes_and_is_recorded(
    steps: Steps, outside: Outside, pauses: Pauses, tighten: Tighten
) -> None:
    run, (call,) = steps.running("test.book")
    held = pauses.hold(run.pk, "call:1:gate")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        held.wait()
        assert tighten("test.book", enabled=False) == Rechecked()
        held.release()
        executor.result()

    assert anew(call).state == "landed"
    assert len(outside.effects) == 1


def test_both_at_the_same_moment_have_one_order(
    steps: Steps, outside: Outside, tighten: Tighten
) -> None:
    for _ in range(8):
        change_tools(["test.book"], by=None, reason="Again.", enabled=True)
        _run, (call,) = steps.running("test.book")
        claim = steps.claim(call)

        passed, done = at_once(
            [lambda c=claim: pass_gate(c), lambda: tighten("test.book", enabled=False)]
        )

        assert anew(call).state == ("in_flight" if passed else "denied")
        assert done.denied <= int(not passed), "the gate may have been first to refuse it"
        if passed:
            steps.land(claim)
