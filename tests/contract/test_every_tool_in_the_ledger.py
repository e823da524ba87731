"""Each tool through the protocol itself: doubt and the truth after it, and how fast it sends."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from agentruns.models import Agent, LedgerEvent, ToolCall
from agentruns.protocol.turn import Proposal, propose_call
from tests.agentruns.steps import Steps, anew, now, pass_time
from tests.contract.conftest import Trial, acts, only
from tests.contract.hands import HANDS
from tools import policy
from tools.contract import Context
from tools.models import Tool
from tools.registry import RegisteredTool

SLOW = 1.6  # seconds; longer than the tool waits
GATE_TO_SEND = 1000.0  # milliseconds


def has_a_server(item: RegisteredTool) -> bool:
    return item.name in HANDS and bool(HANDS[item.name].service)


@pytest.fixture
def steps(transactional_db: None, owner: User, trial: Trial) -> Steps:
    policy.sync()
    agent = Agent.objects.create(slug="a", name="A", model="demo:none", tools=[trial.tool.name])
    return Steps(agent, owner)


def asked(steps: Steps, trial: Trial) -> ToolCall:
    """The call, as a run has asked for it, and as people have agreed to it; not sent yet."""
    run = steps.start()
    lease = steps.think(run)
    call = propose_call(lease, Proposal(trial.tool.name, json.dumps(trial.raw), "provider_1", 0))
    assert call is not None
    steps.finish(lease)
    if anew(call).state == "awaiting_approval":
        steps.approve(anew(call))
    trial.ctx = Context(call.request_id, run.pk, call.pk, "Ana", 10.0)
    return anew(call)


def sent(steps: Steps, call: ToolCall) -> ToolCall:
    call = steps.act(call)
    if call.is_held_back:
        pass_time(call, hours=0.01)
        call = steps.act(call)
    return call


@only(acts)
def test_it_lands_and_sends_soon_after_the_gate(trial: Trial, steps: Steps) -> None:
    call = sent(steps, asked(steps, trial))
    assert call.state == "landed", (call.reason, call.detail)
    assert trial.landed() == 1
    event = LedgerEvent.objects.get(call=call, kind="call.landed")
    assert event.data["gate_to_send_ms"] < GATE_TO_SEND, "its slow work belongs in prepare"


@only(acts)
@only(has_a_server)
@pytest.mark.parametrize("fault", ["drop_after", "delay"])
def test_a_server_that_acts_and_does_not_answer_is_doubted_and_never_asked_again(
    trial: Trial, steps: Steps, fault: Any
) -> None:
    """C7."""
    Tool.objects.filter(name=trial.tool.name).update(time_limit=1)
    call = asked(steps, trial)
    trial.scene.world.fault(trial.hands.service, fault, seconds=SLOW)
    doubted = sent(steps, call)
    assert doubted.state == "in_doubt", (doubted.reason, doubted.detail)
    trial.wait_until_landed()
    if trial.tool.has_lookup:
        assert steps.look_up(doubted).state == "landed"
    assert sent(steps, anew(call)).state == ("landed" if trial.tool.has_lookup else "in_doubt")
    assert trial.landed() == 1
    assert now(call.run).status in ("running", "suspended")


@only(has_a_server)
@only(acts)
def test_a_server_that_refuses_has_done_nothing(trial: Trial, steps: Steps) -> None:
    call = asked(steps, trial)
    trial.scene.world.fault(trial.hands.service, "refuse")
    assert sent(steps, call).state == "failed"
    assert trial.landed() == 0
