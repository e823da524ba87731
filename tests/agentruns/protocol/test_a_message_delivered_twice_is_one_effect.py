"""C4, C5: the broker may deliver a call as often as it likes."""

from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import claim_call, pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, kinds, pass_time
from tests.pausing import Pauses, at_once, in_background


def test_a_message_delivered_twice_is_one_effect(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.book")

    steps.act(call)
    steps.act(call)

    assert outside.attempts == [("test.book", call.request_id)]
    assert kinds(run).count("call.commit_allowed") == 1


def test_ten_messages_at_once_are_one_effect(steps: Steps, outside: Outside) -> None:
    _run, (call,) = steps.running("test.book")

    at_once([lambda: execute_call(call.pk, epoch=1) for _ in range(10)])

    assert outside.attempts == [("test.book", call.request_id)]
    assert anew(call).state == "landed"


def test_a_long_call_is_delivered_again_and_again(
    steps: Steps, outside: Outside, pauses: Pauses
) -> None:
    """The broker's patience is over, and the claim's time too: what is under way stays so."""
    run, (call,) = steps.running("test.book")
    sent = pauses.hold(run.pk, "call:1:sent")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        sent.wait()
        for _ in range(5):
            pass_time(call)
            steps.act(call)
        sent.release()
        executor.result()
    steps.act(call)

    assert outside.attempts == [("test.book", call.request_id)]
    assert kinds(run).count("call.commit_allowed") == kinds(run).count("call.landed") == 1


def test_while_one_executor_has_the_call_another_gets_nothing(steps: Steps) -> None:
    _run, (call,) = steps.running("test.book")
    steps.claim(call)

    assert claim_call(call.pk, epoch=1) is None


def test_the_claim_of_a_dead_executor_runs_out_and_its_heir_sends(
    steps: Steps, outside: Outside
) -> None:
    """C6, before the gate: the worker died, nothing was sent, the next one does it."""
    run, (call,) = steps.running("test.book")
    dead = steps.claim(call)
    pass_time(call)

    assert steps.act(call).state == "landed"

    assert pass_gate(dead) is False
    assert kinds(run)[-1] == "gate.refused"
    assert outside.effects == [("test.book", call.request_id)]


def test_a_message_of_an_older_epoch_does_nothing(steps: Steps, outside: Outside) -> None:
    _run, (call,) = steps.running("test.book")

    execute_call(call.pk, epoch=0)

    assert outside.attempts == []
    assert anew(call).claim_token == ""
