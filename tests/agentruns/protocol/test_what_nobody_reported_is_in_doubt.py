"""Protocol §8: no report at the deadline is doubt, never failure; C6, C7."""

import pytest

from agentruns.protocol.gate import pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, kinds, now, pass_time


def test_a_worker_that_died_after_the_gate_leaves_a_doubt(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.book")
    pass_gate(steps.claim(call))
    assert steps.sweep()["deadlines"] == 0, "it has its time"
    pass_time(call)

    assert steps.sweep()["deadlines"] == 1

    assert (anew(call).state, anew(call).reason) == ("in_doubt", "no_report")
    assert (now(run).status, now(run).suspended_reason) == ("suspended", "dependency")
    steps.act(call)
    assert outside.attempts == [], "it is looked up, and never sent again"


def test_the_drain_deadline_ends_the_wait_as_well(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    pass_gate(steps.claim(call))
    steps.stop(run)
    assert steps.sweep()["deadlines"] == 0
    pass_time(now(run))

    steps.sweep()

    assert anew(call).state == "in_doubt"
    assert now(run).status == "stopped_dirty"


@pytest.mark.parametrize("answer", ["lost", "gone"])
def test_a_broken_connection_is_doubt_and_not_failure(
    steps: Steps, outside: Outside, answer: str
) -> None:
    outside.answers["test.book"] = answer
    _run, (call,) = steps.running("test.book")

    call = steps.act(call)

    assert (call.state, call.reason) == ("in_doubt", "no_answer")
    assert "connection reset" in call.detail


def test_a_refusal_is_failure_and_not_doubt(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = "refused"
    _run, (call,) = steps.running("test.book")

    call = steps.act(call)

    assert (call.state, call.reason, call.detail) == ("failed", "refused", "The outside said no.")


def test_a_read_has_no_effect_to_be_in_doubt_about(steps: Steps, outside: Outside) -> None:
    outside.answers["test.note"] = "lost"
    run = steps.start()
    lease = steps.think(run)
    broken, silent = (steps.propose(lease, "test.note", what) for what in ("a", "b"))

    assert steps.act(broken).state == "failed"
    pass_gate(steps.claim(silent))
    pass_time(silent)
    steps.sweep()

    assert (anew(silent).state, anew(silent).reason) == ("failed", "no_report")


def test_a_draft_that_cannot_be_made_is_failure(steps: Steps, outside: Outside) -> None:
    outside.answers["test.draft.prepare"] = "gone"
    run, (call,) = steps.running("test.draft")

    call = steps.act(call)

    assert (call.state, call.reason) == ("failed", "prepare_failed")
    assert "call.commit_allowed" not in kinds(run)
