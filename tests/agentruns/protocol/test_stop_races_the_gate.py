"""Whoever comes first wins, and the answer to Stop says which: nothing lands in between."""

from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, kinds, now
from tests.pausing import Pauses, at_once, in_background


def test_the_gate_first_and_the_answer_to_stop_says_in_flight(
    steps: Steps, outside: Outside, pauses: Pauses
) -> None:
    """B4: it is past the gate, not sent, and honestly shown; then its real outcome."""
    run, (call,) = steps.running("test.book")
    at_the_gate = pauses.hold(run.pk, "call:1:gate")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        at_the_gate.wait()
        stop = steps.stop(run)
        assert [entry["id"] for entry in stop.answer["groups"]["in_flight"]] == [call.pk]
        assert now(run).status == "draining"
        at_the_gate.release()
        executor.result()

    assert anew(call).state == "landed"
    assert now(run).status == "stopped_clean"
    assert outside.effects == [("test.book", call.request_id)]


def test_sent_and_not_yet_recorded_is_in_flight_too(
    steps: Steps, outside: Outside, pauses: Pauses
) -> None:
    run, (call,) = steps.running("test.book")
    sent = pauses.hold(run.pk, "call:1:sent")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        sent.wait()
        stop = steps.stop(run)
        assert outside.effects == [("test.book", call.request_id)]
        assert [entry["id"] for entry in stop.answer["groups"]["in_flight"]] == [call.pk]
        sent.release()
        executor.result()

    assert anew(call).state == "landed"
    assert steps.stop(run).answer == stop.answer


def test_stop_first_and_the_gate_is_shut(steps: Steps, outside: Outside, pauses: Pauses) -> None:
    """The Stop has committed, and its answer is on its way, when the executor comes."""
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    committed = pauses.hold(run.pk, "stop:committed")
    with in_background(steps.stop, run) as stopping:
        committed.wait()
        assert pass_gate(claim) is False
        committed.release()
        stop = stopping.result()

    assert [entry["id"] for entry in stop.answer["groups"]["never_started"]] == [call.pk]
    assert outside.attempts == []


def test_stop_that_has_only_begun_shuts_nothing_yet(
    steps: Steps, outside: Outside, pauses: Pauses
) -> None:
    run, (call,) = steps.running("test.book")
    begun = pauses.hold(run.pk, "stop:begin")
    with in_background(steps.stop, run) as stopping:
        begun.wait()
        assert steps.act(call).state == "landed"
        begun.release()
        stop = stopping.result()

    assert [entry["id"] for entry in stop.answer["groups"]["done"]] == [call.pk]


def test_both_at_the_same_moment_have_one_order(steps: Steps, outside: Outside) -> None:
    for _ in range(12):
        run, (call,) = steps.running("test.book")
        claim = steps.claim(call)

        passed, stop = at_once([lambda c=claim: pass_gate(c), lambda r=run: steps.stop(r)])

        order = [k for k in kinds(run) if k in ("call.commit_allowed", "stop.requested")]
        if passed:
            assert order == ["call.commit_allowed", "stop.requested"]
            assert [e["id"] for e in stop.answer["groups"]["in_flight"]] == [call.pk]
        else:
            assert order == ["stop.requested"]
            assert [e["id"] for e in stop.answer["groups"]["never_started"]] == [call.pk]
