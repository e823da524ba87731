"""A14: a call that waits to be tried again is not tried again after Stop."""

from pytest_django.fixtures import Settings

from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_no_effect
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, kinds, now, pass_time, told
from tests.pausing import Pauses, in_background
from tools.errors import NoEffect


def test_stop_during_the_pause(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = "busy"
    run, (call,) = steps.running("test.book")
    steps.act(call)

    stop = steps.stop(run)

    assert now(run).status == "stopped_clean"
    assert [entry["id"] for entry in stop.answer["groups"]["never_started"]] == [call.pk]
    assert (anew(call).state, anew(call).reason) == ("voided", "stopped")
    pass_time(call)
    for epoch in (1, 2):
        execute_call(call.pk, epoch=epoch)
    assert len(outside.attempts) == 1
    assert told(call).startswith("Not executed: stopped by the user.")


def test_stop_before_the_attempt_reports(steps: Steps, outside: Outside, pauses: Pauses) -> None:
    """It is known to have had no effect; there is no next attempt."""
    outside.answers["test.book"] = "busy"
    run, (call,) = steps.running("test.book")
    sent = pauses.hold(run.pk, "call:1:sent")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        sent.wait()
        steps.stop(run)
        assert now(run).status == "draining"
        sent.release()
        executor.result()

    assert (anew(call).state, anew(call).reason) == ("failed", "busy")
    assert "call.postponed" not in kinds(run)
    assert now(run).status == "stopped_clean"


def test_stop_between_the_report_and_the_next_attempt_races_the_gate(
    steps: Steps, outside: Outside, pauses: Pauses, settings: Settings
) -> None:
    settings.RETRY_BACKOFF = 0
    outside.answers["test.book"] = ["busy"]
    run, (call,) = steps.running("test.book")
    steps.act(call)
    claimed = pauses.hold(run.pk, "call:1:claimed")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        claimed.wait()
        steps.stop(run)
        claimed.release()
        executor.result()

    assert anew(call).state == "voided"
    assert len(outside.attempts) == 1


def test_a_read_of_a_turn_that_was_lost_is_not_tried_again(steps: Steps) -> None:
    """The turn that asked for it is over, and so is its epoch."""
    run = steps.start()
    call = steps.propose(steps.think(run), "test.note")
    claim = steps.claim(call)
    pass_gate(claim)
    pass_time(now(run))
    steps.sweep()
    assert now(run).epoch == 2

    record_no_effect(claim, NoEffect("busy", "The outside is busy.", is_passing=True))

    assert anew(call).state == "failed"
    assert steps.think(run).turn == 2
