"""A5, A11: the run had ended before; both Stops are told so, and nothing changes."""

import json

from agentruns.models import StopRequest
from tests.agentruns.steps import Steps, kinds, now
from tests.pausing import at_once


def test_stop_of_a_finished_run_says_who_won(steps: Steps) -> None:
    run, _no_calls = steps.running()

    first = steps.stop(run)
    again = steps.stop(run, reason="again")

    assert (now(run).status, now(run).epoch) == ("completed", 1)
    assert json.dumps(first.answer) == json.dumps(again.answer), "to the byte"
    assert first.answer["won_by"] == "completion"
    assert first.answer["phase"] == "completed"
    assert first.answer["ended_before_ms"] > 0
    assert kinds(run).count("stop.too_late") == 1


def test_twenty_stops_of_a_finished_run_are_one_request(steps: Steps) -> None:
    run, _no_calls = steps.running()

    stops = at_once([lambda: steps.stop(run) for _ in range(20)])

    assert StopRequest.objects.count() == 1
    assert [stop.answer for stop in stops] == [stops[0].answer] * 20
