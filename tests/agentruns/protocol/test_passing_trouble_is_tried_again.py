"""Protocol §5: a retry is an attempt like the first, with a claim and a gate of its own."""

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import ATTEMPT_LIMIT, record_no_effect
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, kinds, now, pass_time, told
from tests.pausing import at_once
from tools.errors import NoEffect
from tools.models import Tool


def test_it_is_made_again_and_lands_once(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = ["busy", "busy"]
    run, (call,) = steps.running("test.book")

    waiting = steps.act(call)
    assert (waiting.state, waiting.reason, waiting.attempts) == ("approved", "busy", 1)
    assert (waiting.claim_token, waiting.claim_expires_at) == ("", None)
    assert now(run).status == "running", "the model is not asked meanwhile"
    for _ in range(2):
        pass_time(call)
        steps.act(call)

    assert (anew(call).state, anew(call).reason) == ("landed", "")
    assert outside.attempts == [("test.book", call.request_id)] * 3
    assert outside.effects == [("test.book", call.request_id)]
    assert kinds(run).count("call.commit_allowed") == 3


def test_each_pause_is_longer_and_the_last_failure_is_final(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = "busy"
    run, (call,) = steps.running("test.book")

    pauses = []
    for _ in range(ATTEMPT_LIMIT - 1):
        waiting = steps.act(call)
        postponed = events(run, "call.postponed")[-1]
        assert waiting.next_attempt_at is not None
        assert postponed.at is not None
        pauses.append(round((waiting.next_attempt_at - postponed.at).total_seconds()))
        pass_time(call)
    failed = steps.act(call)

    assert pauses == [1, 2, 4]
    assert (failed.state, failed.reason, failed.attempts) == ("failed", "busy", ATTEMPT_LIMIT)
    assert told(failed) == "Failed, and had no effect (busy). The outside is busy."
    assert steps.think(run).turn == 2, "the model is told, and goes on"


@pytest.mark.parametrize(("asked", "given"), [(7.0, 7), (3600.0, 60), (-5.0, 0)])
def test_the_outside_says_when_to_come_again(steps: Steps, asked: float, given: int) -> None:
    run, (call,) = steps.running("test.book")
    error = NoEffect("busy", "later", is_passing=True, retry_after=asked)

    record_no_effect(steps.claim(call), error)

    postponed = events(run, "call.postponed")[-1]
    due = anew(call).next_attempt_at
    assert due is not None
    assert postponed.at is not None
    assert abs((due - postponed.at) - timedelta(seconds=given)) < timedelta(seconds=1)


def test_nobody_comes_before_it_is_due(steps: Steps, outside: Outside) -> None:
    """C4, C5: doubled messages, early ones, and those of an attempt that is over."""
    outside.answers["test.book"] = ["busy"]
    _run, (call,) = steps.running("test.book")
    steps.act(call)

    for _ in range(3):
        assert steps.act(call).state == "approved"
    assert len(outside.attempts) == 1

    pass_time(call)
    at_once([lambda: execute_call(call.pk, epoch=1)] * 4)
    assert anew(call).state == "landed"
    assert len(outside.attempts) == 2


def test_the_sweeper_rings_for_what_is_due(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = ["busy"]
    _run, (call,) = steps.running("test.book")
    steps.act(call)
    assert steps.sweep()["retries"] == 0

    pass_time(call)

    assert steps.sweep()["retries"] == 1


def test_the_gate_is_passed_anew_and_may_be_shut_by_then(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = "busy"
    _run, (call,) = steps.running("test.book")
    steps.act(call)
    Tool.objects.filter(name="test.book").update(enabled=False)
    pass_time(call)

    denied = steps.act(call)

    assert (denied.state, denied.reason) == ("denied", "tool_disabled")
    assert len(outside.attempts) == 1


def test_a_consent_on_which_nothing_went_out_is_good_for_the_next_attempt(
    steps: Steps, outside: Outside, settings: Settings
) -> None:
    """D7, I12: it is given back in the transaction that says that nothing happened."""
    settings.RETRY_BACKOFF = 0
    outside.answers["test.send"] = ["busy"]
    _run, (call,) = steps.running("test.send")
    steps.approve(call)

    assert steps.act(call).consent_used_at is None
    landed = steps.act(call)

    assert landed.state == "landed"
    assert landed.consent_used_at is not None
    assert outside.effects == [("test.send", call.request_id)]


def test_a_consent_runs_out_during_the_pause(steps: Steps, outside: Outside) -> None:
    outside.answers["test.send"] = ["busy"]
    _run, (call,) = steps.running("test.send")
    steps.approve(call)
    steps.act(call)
    pass_time(call)

    denied = steps.act(call)

    assert (denied.state, denied.reason) == ("denied", "needs_consent")
    assert outside.effects == []


def test_trouble_with_a_draft_is_tried_again_with_a_new_draft(
    steps: Steps, outside: Outside, settings: Settings
) -> None:
    settings.RETRY_BACKOFF = 0
    outside.answers |= {"test.draft.prepare": ["busy"], "test.draft": ["busy"]}
    run, (call,) = steps.running("test.draft")

    assert steps.act(call).attempts == 1, "prepare found the outside busy"
    assert outside.attempts == []
    assert steps.act(call).attempts == 2, "so did commit"
    assert anew(call).draft is None
    assert outside.voided == {call.request_id}
    assert steps.act(call).state == "landed"

    assert outside.effects == [("test.draft", call.request_id)]
    assert kinds(run).count("call.prepared") == 2


def test_a_read_is_tried_again_while_the_answer_goes_on(
    steps: Steps, outside: Outside, settings: Settings
) -> None:
    settings.RETRY_BACKOFF = 0
    outside.answers["test.note"] = ["busy"]
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.note")
    steps.act(call)
    steps.finish(lease)

    assert now(run).status == "running"
    assert steps.act(call).state == "landed"


def test_an_attempt_that_is_known_late_to_have_failed_is_not_repeated(steps: Steps) -> None:
    """It was in doubt already; the model decides what to do about a failure."""
    _run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)
    pass_time(call)
    steps.sweep()
    assert anew(call).state == "in_doubt"

    record_no_effect(claim, NoEffect("busy", "later", is_passing=True))

    assert (anew(call).state, anew(call).reason) == ("failed", "busy")
