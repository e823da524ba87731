"""R33, R22: what is held back has not happened, until its time has come and the gate was passed."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from agentruns.errors import WrongState
from agentruns.protocol.withhold import withhold_call
from tests.agentruns.outside import HELD, Outside
from tests.agentruns.steps import Steps, anew, events, kinds, now, pass_time, told


def test_it_goes_out_when_its_time_has_come_and_not_before(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.later")

    held = steps.act(call)
    assert (held.state, held.claim_token, held.is_held_back) == ("prepared", "", True)
    assert steps.act(call).state == "prepared", "nobody may send it yet"
    prepared = events(run, "call.prepared")[0]
    assert held.next_attempt_at is not None
    assert prepared.at is not None
    left = held.next_attempt_at - prepared.at
    assert abs(left - timedelta(seconds=HELD)) < timedelta(seconds=1)
    assert (outside.attempts, now(run).status) == ([], "running")

    pass_time(call)
    landed = steps.act(call)
    assert (landed.state, landed.next_attempt_at) == ("landed", None)
    assert outside.effects == [("test.later", call.request_id)]
    assert kinds(run).count("call.prepared") == 1


def test_it_is_found_by_the_sweeper_when_its_bell_is_lost(steps: Steps, outside: Outside) -> None:
    _run, (call,) = steps.running("test.later")
    steps.act(call)
    assert steps.sweep()["retries"] == 0
    pass_time(call)
    assert steps.sweep()["retries"] == 1


def test_what_comes_after_it_waits_for_it(steps: Steps, outside: Outside) -> None:
    _run, (held, after) = steps.running("test.later", "test.book")
    steps.act(held)
    assert steps.act(after).state == "approved"
    assert outside.attempts == []


def test_stop_makes_it_a_non_event(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.later")
    steps.act(call)
    steps.stop(run)
    pass_time(call)
    steps.act(call)
    assert (anew(call).state, anew(call).reason) == ("voided", "stopped")
    assert (now(run).status, outside.attempts) == ("stopped_clean", [])


def test_a_person_takes_it_back_and_the_run_goes_on(
    steps: Steps, outside: Outside, owner: User
) -> None:
    run, (call, after) = steps.running("test.later", "test.book")
    steps.act(call)

    withhold_call(call.pk, by=owner)
    withhold_call(call.pk, by=owner)

    assert (anew(call).state, anew(call).reason) == ("voided", "withheld")
    assert kinds(run).count("call.voided") == 1
    assert told(call) == ("Not executed: the user took it back before it was sent.")
    pass_time(call)
    steps.act(call)
    assert steps.act(after).state == "landed"
    assert outside.effects == [("test.book", after.request_id)]


def test_what_has_left_is_not_taken_back(steps: Steps, outside: Outside, owner: User) -> None:
    _run, (call,) = steps.running("test.later")
    steps.act(call)
    pass_time(call)
    steps.act(call)
    with pytest.raises(WrongState, match="not waiting to be sent"):
        withhold_call(call.pk, by=owner)


def test_a_call_that_is_not_held_is_not_taken_back(steps: Steps, owner: User) -> None:
    _run, (call,) = steps.running("test.book")
    with pytest.raises(WrongState):
        withhold_call(call.pk, by=owner)
    assert anew(call).state == "approved"
