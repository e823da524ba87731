"""Protocol §4: an outcome is truth about the world; it is kept, and moves no plan forward."""

from agentruns.models import StopRequest
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_doubt, record_failed, record_landed
from tests.agentruns.steps import Steps, anew, kinds, now, pass_time
from tools.contract import Receipt

RECEIPT = Receipt({"id": "42"}, "It is done.")


def test_an_outcome_after_the_stop_is_recorded_and_settles_the_run(steps: Steps) -> None:
    run, (call, later) = steps.running("test.book", "test.book")
    claim = steps.claim(call)
    pass_gate(claim)
    stop = steps.stop(run)
    assert now(run).status == "draining"
    assert stop.answer["waits_for"]["calls"] == [call.pk]

    record_landed(claim, RECEIPT)

    assert (anew(call).state, anew(call).receipt) == ("landed", RECEIPT.data)
    assert anew(later).state == "voided"
    assert now(run).status == "stopped_clean"
    settled = StopRequest.objects.get()
    assert settled.settled_at is not None
    assert settled.settled_at > settled.no_new_effect_at
    assert settled.answer == stop.answer
    assert kinds(run)[-2:] == ["call.landed", "run.stopped"]


def test_a_failure_after_the_stop_settles_it_too(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)
    steps.stop(run)

    record_failed(claim, "refused", "no")

    assert anew(call).state == "failed"
    assert now(run).status == "stopped_clean"


def test_a_doubt_after_the_stop_leaves_it_dirty(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)
    steps.stop(run)

    record_doubt(claim, "connection reset")

    assert anew(call).state == "in_doubt"
    assert now(run).status == "stopped_dirty"


def test_an_outcome_that_comes_after_its_deadline_ends_the_doubt(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)
    steps.stop(run)
    pass_time(call)
    steps.sweep()
    assert now(run).status == "stopped_dirty"

    record_landed(claim, RECEIPT)

    assert anew(call).state == "landed"
    assert now(run).status == "stopped_clean"
    assert kinds(run)[-2:] == ["call.landed", "run.reconciled"]


def test_an_outcome_without_the_claim_changes_nothing(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    old = steps.claim(call)
    pass_time(call)
    new = steps.claim(call)
    pass_gate(new)

    record_landed(old, RECEIPT)
    record_failed(old, "x", "")
    record_doubt(old, "")

    assert anew(call).state == "in_flight"
    assert now(run).ledger_seq == len(kinds(run))


def test_an_outcome_that_comes_twice_is_kept_once(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)

    record_landed(claim, RECEIPT)
    record_landed(claim, Receipt({"id": "43"}, "Again."))
    record_failed(claim, "x", "")

    assert anew(call).receipt == {"id": "42"}
    assert kinds(run).count("call.landed") == 1
    assert kinds(run).count("outcome.repeated") == 2
