"""What the outside answers is recorded, also where the database cannot keep every character."""

from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_doubt, record_failed, record_landed
from tests.agentruns.steps import Steps, anew, events, now
from tools.contract import Receipt

ODD = "a\x00b\ud800"
KEPT = "a\ufffdb\ufffd"


def test_what_landed_has_landed(steps: Steps) -> None:
    _run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)

    record_landed(claim, Receipt({"answer": [ODD, float("inf")]}, ODD))

    kept = anew(call)
    assert (kept.state, kept.receipt, kept.response) == (
        "landed",
        {"answer": [KEPT, "inf"]},
        KEPT,
    )


def test_what_failed_has_failed_and_what_is_unknown_is_in_doubt(steps: Steps) -> None:
    for record, state in ((record_failed, "failed"), (record_doubt, "in_doubt")):
        _run, (call,) = steps.running("test.book")
        claim = steps.claim(call)
        pass_gate(claim)
        args = ("refused", ODD) if record is record_failed else (ODD,)

        record(claim, *args)

        assert (anew(call).state, anew(call).detail) == (state, KEPT)


def test_a_call_that_cannot_be_kept_as_it_was_written_is_not_done(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)

    call = anew(steps.propose(lease, "test.book", "a\x00b"))

    assert (call.state, call.reason) == ("failed", "bad_arguments")
    assert steps.finish(lease)
    assert now(run).status == "running"
    assert len(events(run, "call.commit_allowed")) == 0
