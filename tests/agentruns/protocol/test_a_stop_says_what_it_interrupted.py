"""R10: each interruption is classified, by the most serious thing that it interrupted."""

from agentruns.models import Run
from agentruns.protocol.gate import pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, events, now


def stopped(steps: Steps, run: Run) -> str:
    stop = steps.stop(run)
    (event,) = events(run, "stop.requested")
    assert event.data["interrupted"] == stop.answer["interrupted"] == stop.interrupted
    return stop.interrupted


def test_before_a_worker_picked_it_up(steps: Steps) -> None:
    assert stopped(steps, steps.start()) == "before_start"


def test_while_the_model_was_writing(steps: Steps) -> None:
    run = steps.start()
    steps.propose(steps.think(run), "test.book")
    assert stopped(steps, run) == "generating"


def test_in_a_read(steps: Steps) -> None:
    run = steps.start()
    call = steps.propose(steps.think(run), "test.note")
    assert pass_gate(steps.claim(call))
    assert stopped(steps, run) == "in_read"


def test_before_an_effect(steps: Steps) -> None:
    run, _calls = steps.running("test.book")
    assert stopped(steps, run) == "before_effect"


def test_after_an_effect_was_let_go(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    assert pass_gate(steps.claim(call))
    assert stopped(steps, run) == "after_effect"


def test_with_a_doubt(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = "lost"
    run, (call,) = steps.running("test.book")
    steps.act(call)
    assert stopped(steps, run) == "after_effect"


def test_while_it_waited_for_a_person(steps: Steps) -> None:
    run, _calls = steps.running("test.send")
    assert stopped(steps, run) == "waiting"


def test_between_two_turns_there_is_nothing_to_interrupt(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    steps.act(call)
    assert now(run).status == "running"
    assert stopped(steps, run) == ""
