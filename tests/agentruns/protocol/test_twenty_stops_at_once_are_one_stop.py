"""A1: twenty Stops at once are one StopRequest, one epoch step, and twenty equal answers."""

from agentruns.models import StopRequest
from tests.agentruns.steps import Steps, events, now
from tests.pausing import at_once


def test_twenty_stops_at_once_are_one_stop(steps: Steps) -> None:
    run, _calls = steps.running("test.book", "test.send")

    stops = at_once([lambda: steps.stop(run) for _ in range(20)])

    assert StopRequest.objects.filter(run=run).count() == 1
    assert now(run).epoch == run.epoch + 1
    assert len(events(run, "stop.requested")) == 1
    assert [stop.answer for stop in stops] == [stops[0].answer] * 20


def test_a_stop_pressed_again_after_the_run_settled_gets_the_first_answer(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    first = steps.stop(run)
    steps.give_back(lease)

    again = steps.stop(run, reason="another reason", pending="freeze")

    assert now(run).status == "stopped_clean"
    assert first.answer["phase"] == "cancel_requested"
    assert again.answer == first.answer
