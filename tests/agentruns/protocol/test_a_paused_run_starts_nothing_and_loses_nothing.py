"""R09: pause holds what has not started, refuses nothing, and a person lets it go on."""

import pytest

from agentruns.errors import WrongState
from agentruns.protocol.gate import claim_call, pass_gate
from agentruns.protocol.lease import take_lease
from agentruns.protocol.turn import break_turn
from tests.agentruns.outside import Outside
from tests.agentruns.steps import TEXT, Steps, anew, events, kinds, now, pass_time


def test_nothing_is_claimed_while_the_run_is_paused(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.book")

    steps.pause(run, reason="lunch")

    assert (now(run).status, now(run).suspended_reason) == ("suspended", "paused")
    assert claim_call(call.pk, epoch=now(run).epoch) is None
    assert steps.act(call).state == "approved", "held, and not refused"
    assert outside.attempts == []

    steps.unpause(run)

    assert steps.act(call).state == "landed"
    assert "call.denied" not in kinds(run)


def test_a_pause_between_claim_and_gate_holds_the_call(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)

    steps.pause(run)

    assert not pass_gate(claim)
    assert anew(call).state == "approved"
    steps.unpause(run)
    assert steps.act(call).state == "landed"
    assert len(outside.effects) == 1


def test_what_is_in_flight_reports_while_the_run_is_paused(steps: Steps) -> None:
    run, (first, second) = steps.running("test.book", "test.post")
    claim = steps.claim(first)
    assert pass_gate(claim)

    steps.pause(run)
    steps.land(claim)

    assert anew(first).state == "landed"
    assert anew(second).state == "approved"
    assert now(run).suspended_reason == "paused"


def test_the_answer_that_is_being_written_is_kept_and_nothing_comes_of_it(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    steps.pause(run)

    call = steps.propose(lease, "test.book")
    assert steps.finish(lease)

    assert anew(call).state == "approved"
    assert now(run).suspended_reason == "paused"
    assert take_lease(run.pk, epoch=now(run).epoch) is None
    steps.unpause(run)
    assert steps.act(call).state == "landed"


def test_an_answer_that_breaks_off_ends_the_run_and_its_pause(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    steps.pause(run)

    assert break_turn(lease, TEXT, "answer_length", "")

    assert (now(run).status, now(run).suspended_reason) == ("failed", "")
    with pytest.raises(WrongState, match="not paused"):
        steps.unpause(run)


def test_a_driver_that_dies_while_its_run_is_paused_leaves_it_paused(steps: Steps) -> None:
    run = steps.start()
    steps.think(run)
    steps.pause(run)

    pass_time(run)
    steps.sweep()

    assert (now(run).suspended_reason, now(run).epoch) == ("paused", 2)
    steps.unpause(run)
    steps.turn(run)
    assert now(run).status == "completed"


def test_a_run_that_nobody_has_picked_up_waits_in_the_queue_again(steps: Steps) -> None:
    run = steps.start()
    steps.pause(run)
    assert take_lease(run.pk, epoch=1) is None

    steps.unpause(run)

    assert now(run).status == "queued"
    steps.turn(run)
    assert now(run).status == "completed"


def test_an_approval_that_comes_while_the_run_is_paused_is_kept(steps: Steps) -> None:
    run, (call,) = steps.running("test.send")
    steps.pause(run)

    steps.approve(call)

    assert now(run).suspended_reason == "paused"
    steps.unpause(run)
    assert steps.act(call).state == "landed"


def test_pausing_twice_is_pausing_once(steps: Steps) -> None:
    run, _calls = steps.running("test.book")
    steps.pause(run)
    steps.pause(run)
    assert len(events(run, "run.suspended")) == 1


def test_a_paused_run_is_stopped_like_any_other(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    steps.pause(run)

    stop = steps.stop(run)

    assert (now(run).status, anew(call).state) == ("stopped_clean", "voided")
    assert stop.interrupted == "waiting"
    with pytest.raises(WrongState):
        steps.unpause(run)


def test_what_a_run_started_is_paused_with_it(steps: Steps) -> None:
    run, _calls = steps.running("test.send")
    child = steps.start(parent_id=run.pk)

    steps.pause(run)
    born_later = steps.start(parent_id=run.pk)

    assert {now(each).suspended_reason for each in (run, child, born_later)} == {"paused"}
    steps.unpause(run)
    assert (now(run).suspended_reason, now(child).status) == ("approval", "queued")


@pytest.mark.parametrize("end", ["completed", "stopped"])
def test_a_run_that_has_ended_cannot_be_paused(steps: Steps, end: str) -> None:
    run = steps.start()
    if end == "stopped":
        steps.stop(run)
    else:
        lease = steps.think(run)
        assert steps.finish(lease)
    with pytest.raises(WrongState):
        steps.pause(run)
    assert TEXT.text  # the turn had text, and the run no call
