"""While a run is paused, or out of its budget, its calls wait at the gate, and none is refused."""

import pytest

from agentruns.models import Agent
from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_no_effect
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, kinds, now, pass_time
from tests.pausing import Pauses, in_background
from tools.errors import NoEffect


def test_a_draft_that_was_made_before_the_pause_is_sent_after_it(
    steps: Steps, outside: Outside, pauses: Pauses
) -> None:
    run, (call,) = steps.running("test.draft")
    prepared = pauses.hold(run.pk, "call:1:prepared")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        prepared.wait()
        steps.pause(run)
        prepared.release()
        executor.result()

    held = anew(call)
    assert (held.state, held.claim_token, held.claim_expires_at) == ("prepared", "", None)
    assert [event.data["reason"] for event in events(run, "gate.refused")] == ["paused"]
    assert outside.voided == set()

    steps.unpause(run)
    assert steps.act(call).state == "landed"


def test_an_attempt_that_fails_in_passing_during_the_pause(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)
    steps.pause(run)

    record_no_effect(claim, NoEffect("busy", "The outside is busy.", is_passing=True))
    pass_time(call)

    assert steps.act(call).state == "approved"
    assert now(run).suspended_reason == "paused"
    steps.unpause(run)
    assert steps.act(call).state == "landed"


@pytest.mark.parametrize(
    ("on_limit", "state", "status"),
    [
        ("stop", "frozen", "stopped_clean"),
        ("wait", "approved", "suspended"),
        ("degrade", "denied", "running"),
    ],
)
def test_a_limit_that_is_reached_on_the_way_to_the_gate(
    steps: Steps, agent: Agent, outside: Outside, on_limit: str, state: str, status: str
) -> None:
    Agent.objects.update(call_limit=1, on_limit=on_limit)
    steps.agent = Agent.objects.get(pk=agent.pk)
    run, (first, second) = steps.running("test.book", "test.post")
    steps.act(first)

    steps.act(second)

    assert (anew(second).state, now(run).status) == (state, status)
    assert ("call.denied" in kinds(run)) == (on_limit == "degrade")
    assert len(outside.attempts) == 1


def test_the_attempts_of_one_call_count_as_one(
    steps: Steps, agent: Agent, outside: Outside
) -> None:
    Agent.objects.update(call_limit=1)
    steps.agent = Agent.objects.get(pk=agent.pk)
    outside.answers["test.book"] = ["busy"]
    _run, (call,) = steps.running("test.book")
    steps.act(call)
    pass_time(call)

    assert steps.act(call).state == "landed"
