"""The last outcome and Stop at the same moment: the run settles, and the outcome is kept."""

from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_landed
from tests.agentruns.steps import Steps, anew, now
from tests.pausing import Pauses, at_once, in_background
from tools.contract import Receipt

RECEIPT = Receipt({"id": "1"}, "Done.")


def test_stop_races_an_outcome(steps: Steps) -> None:
    for _ in range(10):
        run, (call, later) = steps.running("test.book", "test.book")
        claim = steps.claim(call)
        pass_gate(claim)

        _none, stop = at_once(
            [lambda c=claim: record_landed(c, RECEIPT), lambda r=run: steps.stop(r)]
        )

        assert anew(call).state == "landed"
        assert anew(later).state == "voided"
        assert now(run).status == "stopped_clean"
        group = "in_flight" if stop.answer["groups"]["in_flight"] else "done"
        assert [entry["id"] for entry in stop.answer["groups"][group]] == [call.pk]


def test_the_outcome_comes_after_the_stop_committed_and_before_its_answer(
    steps: Steps, pauses: Pauses
) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)
    committed = pauses.hold(run.pk, "stop:committed")
    with in_background(steps.stop, run) as stopping:
        committed.wait()
        record_landed(claim, RECEIPT)
        assert now(run).status == "stopped_clean"
        committed.release()
        stop = stopping.result()

    assert stop.answer["phase"] == "draining", "as things stood when it took effect"
    assert [entry["id"] for entry in stop.answer["groups"]["in_flight"]] == [call.pk]
