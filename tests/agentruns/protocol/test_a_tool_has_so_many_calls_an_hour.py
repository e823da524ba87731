"""A rate limit: what is too much waits for its turn, and passes the gate then."""

from datetime import timedelta

import pytest
from django.db.models import F
from pytest_django.fixtures import Settings

from agentruns.models import ToolCall
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.recheck import recheck_tool
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, kinds, now
from tests.forging import rewrite
from tests.pausing import at_once
from tools.models import Tool


def limit(tool: str, calls: int | None) -> None:
    Tool.objects.filter(name=tool).update(rate_limit=calls)


def age(call: ToolCall, minutes: float) -> None:
    """As if it had gone out so much earlier."""
    by = timedelta(minutes=minutes)
    rewrite(
        ToolCall.objects.filter(pk=call.pk),
        gate_passed_at=F("gate_passed_at") - by,
        ended_at=F("ended_at") - by,
    )


@pytest.mark.breaks_ledger
def test_what_is_too_much_waits_until_the_oldest_is_an_hour_old(
    steps: Steps, outside: Outside
) -> None:
    limit("test.book", 2)
    run, calls = steps.running("test.book", "test.book", "test.book")
    first, _second = steps.act(calls[0]), steps.act(calls[1])
    age(first, 50)

    third = steps.act(calls[2])

    assert (third.state, third.reason, third.attempts) == ("approved", "rate_limited", 0)
    assert third.next_attempt_at == anew(first).gate_passed_at + timedelta(hours=1)
    assert len(outside.effects) == 2
    assert [event.data["reason"] for event in events(run, "call.postponed")] == ["rate_limited"]
    assert steps.act(third).state == "approved", "not before its time"
    assert kinds(run).count("call.postponed") == 1


@pytest.mark.breaks_ledger
def test_its_turn_comes_and_the_gate_is_asked_anew(steps: Steps, outside: Outside) -> None:
    limit("test.book", 1)
    _run, calls = steps.running("test.book", "test.book")
    age(steps.act(calls[0]), 59.99)
    assert steps.act(calls[1]).reason == "rate_limited"
    ToolCall.objects.filter(pk=calls[1].pk).update(next_attempt_at=F("proposed_at"))
    age(calls[0], 1)
    assert steps.sweep()["retries"] == 1

    assert steps.act(calls[1]).state == "landed"
    assert anew(calls[1]).reason == ""


def test_a_rule_that_was_tightened_meanwhile_holds(steps: Steps, outside: Outside) -> None:
    limit("test.book", 1)
    _run, calls = steps.running("test.book", "test.book")
    steps.act(calls[0])
    steps.act(calls[1])
    ToolCall.objects.filter(pk=calls[1].pk).update(next_attempt_at=F("proposed_at"))
    Tool.objects.filter(name="test.book").update(enabled=False)

    assert steps.act(calls[1]).reason == "tool_disabled"


def test_stop_drops_what_waits_for_its_turn(steps: Steps, outside: Outside) -> None:
    limit("test.book", 1)
    run, calls = steps.running("test.book", "test.book")
    for call in calls:
        steps.act(call)

    steps.stop(run)

    assert now(run).status == "stopped_clean"
    assert (anew(calls[1]).state, anew(calls[1]).reason) == ("voided", "stopped")


@pytest.mark.breaks_ledger
def test_a_draft_waits_as_it_is(steps: Steps, outside: Outside) -> None:
    limit("test.draft", 1)
    run, calls = steps.running("test.draft", "test.draft")
    steps.act(calls[0])

    waiting = steps.act(calls[1])

    assert (waiting.state, waiting.reason) == ("prepared", "rate_limited")
    assert waiting.draft is not None
    assert outside.voided == set()
    assert events(run, "call.held_up")[0].data["reason"] == "rate_limited"
    age(calls[0], 61)
    ToolCall.objects.filter(pk=waiting.pk).update(next_attempt_at=F("proposed_at"))
    assert steps.sweep()["retries"] == 1
    assert steps.act(waiting).state == "landed"


@pytest.mark.breaks_ledger
def test_other_tools_and_other_hours_do_not_count(steps: Steps, outside: Outside) -> None:
    limit("test.book", 1)
    _run, calls = steps.running("test.book", "test.post", "test.book")
    age(steps.act(calls[0]), 61)

    assert [steps.act(call).state for call in calls[1:]] == ["landed", "landed"]


def test_what_is_in_flight_or_in_doubt_counts(steps: Steps, outside: Outside) -> None:
    limit("test.book", 1)
    _run, (flying,) = steps.running("test.book")
    claim = steps.claim(flying)
    pass_gate(claim)
    _other, (call,) = steps.running("test.book")

    assert steps.act(call).reason == "rate_limited"
    steps.land(claim)


def test_a_call_that_would_be_refused_is_not_made_to_wait(steps: Steps, outside: Outside) -> None:
    limit("test.book", 1)
    run, calls = steps.running("test.book", "test.book")
    steps.act(calls[0])
    claim = steps.claim(calls[1])
    Tool.objects.filter(name="test.book").update(enabled=False)

    assert pass_gate(claim) is False
    assert (anew(calls[1]).state, now(run).status) == ("denied", "running")


@pytest.mark.breaks_ledger
def test_many_at_once_are_no_more_than_the_limit(
    steps: Steps, outside: Outside, settings: Settings
) -> None:
    settings.ACT_PLACES = 6  # four for one person
    limit("test.book", 2)
    for _ in range(8):
        calls = [steps.running("test.book")[1][0] for _ in range(4)]
        claims = [steps.claim(call) for call in calls]

        passed = at_once([lambda c=claim: pass_gate(c) for claim in claims])

        assert sum(passed) == 2
        assert sum(anew(call).reason == "rate_limited" for call in calls) == 2
        for call, claim, went in zip(calls, claims, passed, strict=True):
            if went:
                steps.land(claim)
                age(call, 61)


def test_what_waits_goes_at_once_when_the_limit_is_lifted(steps: Steps, outside: Outside) -> None:
    limit("test.book", 1)
    _run, calls = steps.running("test.book", "test.book")
    steps.act(calls[0])
    assert steps.act(calls[1]).reason == "rate_limited"

    limit("test.book", None)
    recheck_tool("test.book", by=None)

    assert steps.act(calls[1]).state == "landed"
