"""Protocol §9: what may only be finished or not begun is finished, and Stop says so."""

import pytest
from pytest_django.fixtures import Settings

from agentruns.models import Grant
from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import pass_gate
from tests.agentruns.orders import begun, finish, ordered, states
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, kinds, now, pass_time
from tests.forging import rewrite
from tests.pausing import Pauses, at_once, in_background
from tools.models import Tool


def test_a_unit_that_has_not_begun_is_dropped(steps: Steps, outside: Outside) -> None:
    run, calls = ordered(steps)

    steps.stop(run)

    assert now(run).status == "stopped_clean"
    assert states(calls) == ["voided"] * 3
    assert [finish(call).state for call in calls] == ["voided"] * 3
    assert outside.attempts == []


def test_a_unit_that_has_begun_is_finished(steps: Steps, outside: Outside) -> None:
    run, calls = begun(steps)

    stop = steps.stop(run)

    assert stop.answer["waits_for"]["after"] == ["order, step 2 of 3", "order, step 3 of 3"]
    assert now(run).status == "draining"
    assert states(calls) == ["landed", "approved", "approved"]
    assert finish(calls[1]).state == "landed"
    assert now(run).status == "draining"
    assert finish(calls[2]).state == "landed"
    assert now(run).status == "stopped_clean"
    passed = events(run, "call.commit_allowed")
    assert [event.data.get("finishes_unit") for event in passed] == [None, *["order:shoes"] * 2]
    assert steps.stop(run).answer == stop.answer


def test_what_is_not_of_the_unit_is_dropped_at_once(steps: Steps, outside: Outside) -> None:
    run = steps.start()
    lease = steps.think(run)
    reserve = steps.propose(lease, "test.reserve", "shoes")
    between = steps.propose(lease, "test.book", "a table")
    pay, ship = (steps.propose(lease, tool, "shoes") for tool in ("test.pay", "test.ship"))
    steps.finish(lease)
    steps.act(reserve)

    steps.stop(run)

    assert states([between, pay, ship]) == ["voided", "approved", "approved"]
    assert [finish(call).state for call in (between, pay, ship)] == ["voided", "landed", "landed"]
    assert now(run).status == "stopped_clean"


def test_stop_while_the_first_step_is_under_way(
    steps: Steps, outside: Outside, pauses: Pauses
) -> None:
    run, calls = ordered(steps)
    at_the_gate = pauses.hold(run.pk, "call:1:gate")
    with in_background(execute_call, calls[0].pk, epoch=1) as executor:
        at_the_gate.wait()
        steps.stop(run)
        assert finish(calls[1]).state == "approved", "its turn has not come"
        at_the_gate.release()
        executor.result()

    assert now(run).status == "draining"
    assert [finish(call).state for call in calls] == ["landed"] * 3
    assert now(run).status == "stopped_clean"


def test_a_first_step_without_an_effect_has_begun_nothing(
    steps: Steps, outside: Outside, pauses: Pauses
) -> None:
    outside.answers["test.reserve"] = "busy"
    run, calls = ordered(steps)
    sent = pauses.hold(run.pk, "call:1:sent")
    with in_background(execute_call, calls[0].pk, epoch=1) as executor:
        sent.wait()
        steps.stop(run)
        sent.release()
        executor.result()

    assert states(calls) == ["failed", "voided", "voided"]
    assert now(run).status == "stopped_clean"


def test_a_later_step_is_tried_again_while_there_is_time(
    steps: Steps, outside: Outside, settings: Settings
) -> None:
    settings.RETRY_BACKOFF = 0
    outside.answers["test.pay"] = ["busy"]
    run, calls = begun(steps)
    steps.stop(run)

    assert finish(calls[1]).state == "approved"
    assert now(run).status == "draining"
    assert [finish(call).state for call in calls] == ["landed"] * 3
    assert now(run).status == "stopped_clean"


def test_a_step_that_fails_ends_the_wait(steps: Steps, outside: Outside) -> None:
    outside.answers["test.pay"] = "refused"
    run, calls = begun(steps)
    steps.stop(run)

    finish(calls[1])

    assert states(calls) == ["landed", "failed", "voided"]
    assert now(run).status == "stopped_clean"


def test_the_executor_that_was_killed_between_two_steps(steps: Steps, outside: Outside) -> None:
    """C6: the sweeper rings for the next step, and its claim is taken over."""
    run, calls = begun(steps)
    steps.claim(calls[1])
    steps.stop(run)
    assert finish(calls[1]).state == "approved", "somebody has it, as far as anybody knows"
    pass_time(anew(calls[1]))

    steps.sweep()

    assert [finish(call).state for call in calls] == ["landed"] * 3
    assert now(run).status == "stopped_clean"


def test_the_executor_that_was_killed_in_a_step(steps: Steps, outside: Outside) -> None:
    """Its step is in doubt at its own deadline, and looked up; the unit goes on from there."""
    outside.answers["test.pay"] = ["lost"]
    run, calls = begun(steps)
    steps.stop(run)
    finish(calls[1])
    assert states(calls) == ["landed", "in_doubt", "approved"]
    assert now(run).status == "draining"

    steps.look_up(calls[1])

    assert finish(calls[2]).state == "landed"
    assert now(run).status == "stopped_clean"


def test_what_has_not_gone_when_time_is_up_is_kept_for_a_person(
    steps: Steps, outside: Outside
) -> None:
    """I10: a run settles, with every worker dead."""
    run, calls = begun(steps)
    steps.stop(run)
    pass_time(now(run))

    steps.sweep()

    assert now(run).status == "stopped_clean"
    assert states(calls) == ["landed", "frozen", "frozen"]
    assert anew(calls[1]).reason == "unit_unfinished"
    assert finish(calls[1]).state == "frozen"

    steps.resume(run)
    assert [steps.act(call).state for call in calls[1:]] == ["landed", "landed"]


def test_a_step_under_way_has_its_own_time(steps: Steps, outside: Outside) -> None:
    run, calls = begun(steps)
    assert pass_gate(steps.claim(calls[1]))
    steps.stop(run)
    pass_time(now(run))

    steps.sweep()

    assert states(calls) == ["landed", "in_flight", "frozen"]
    assert now(run).status == "draining"
    pass_time(anew(calls[1]))
    steps.sweep()
    assert (anew(calls[1]).state, now(run).status) == ("in_doubt", "stopped_dirty")


REFUSED = {
    "an admin switched the tool off": (
        lambda: Tool.objects.filter(name="test.pay").update(enabled=False),
        "tool_disabled",
    ),
    "C8, D19: somebody had taken the authority back before": (
        lambda: rewrite(Grant.objects.all(), revoked_at="2026-01-01T00:00Z"),
        "grant_does_not_cover",
    ),
}


@pytest.mark.parametrize(("change", "reason"), REFUSED.values(), ids=REFUSED)
def test_each_step_passes_the_gate_by_itself(
    steps: Steps, outside: Outside, change: object, reason: str
) -> None:
    run, calls = begun(steps)
    steps.stop(run)
    assert callable(change)
    change()

    finish(calls[1])

    assert states(calls) == ["landed", "denied", "voided"]
    assert anew(calls[1]).reason == reason
    assert now(run).status == "stopped_clean"
    assert len(outside.attempts) == 1


def test_two_workers_finish_it_once(steps: Steps, outside: Outside) -> None:
    """C4, C5."""
    run, calls = begun(steps)
    steps.stop(run)

    for call in calls[1:]:
        at_once([lambda c=call: finish(c)] * 4)

    assert outside.effects == [(call.tool, call.request_id) for call in calls]
    assert kinds(run).count("call.landed") == 3


def test_stop_races_the_gate_of_the_first_step(steps: Steps, outside: Outside) -> None:
    for number in range(8):
        run, calls = ordered(steps, what=f"order {number}")
        claim = steps.claim(calls[0])

        passed, _stop = at_once([lambda c=claim: pass_gate(c), lambda r=run: steps.stop(r)])

        rest = ["approved", "approved"] if passed else ["voided", "voided"]
        assert states(calls[1:]) == rest
        steps.land(claim)
        for call in calls[1:]:
            finish(call)
        assert now(run).status == "stopped_clean"
        assert len(set(states(calls))) == 1, "all of it, or nothing"
