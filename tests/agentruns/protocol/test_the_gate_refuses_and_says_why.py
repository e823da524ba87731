"""Protocol §5: each check is made at the moment of the effect, and its refusal is on record."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from agentruns.models import Grant, ToolCall
from agentruns.protocol.gate import claim_call, pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, now, pass_time
from tests.forging import rewrite
from tools import registry
from tools.models import Tool

Change = Callable[[ToolCall], object]

# What changes between the claim and the gate, and what the refusal is called.
CHANGES: dict[str, tuple[Change, str]] = {
    "C8, D19: the grant was revoked": (
        lambda call: Grant.objects.update(revoked_at="2026-01-01T00:00Z"),
        "grant_does_not_cover",
    ),
    "the owner's account was deactivated": (
        lambda call: User.objects.filter(pk=call.run.owner_id).update(is_active=False),
        "owner_deactivated",
    ),
    "the grant names other tools": (
        lambda call: rewrite(Grant.objects.all(), tools=["test.note"]),
        "grant_does_not_cover",
    ),
    "the grant covers lighter tiers only": (
        lambda call: rewrite(Grant.objects.all(), tiers=["read_only"]),
        "grant_does_not_cover",
    ),
    "an admin switched the tool off": (
        lambda call: Tool.objects.filter(name=call.tool).update(enabled=False),
        "tool_disabled",
    ),
    "an admin made it irreversible": (
        lambda call: Tool.objects.filter(name=call.tool).update(tier="irreversible"),
        "needs_consent",
    ),
    "an admin wants to be asked": (
        lambda call: Tool.objects.filter(name=call.tool).update(approvals_needed=1),
        "needs_consent",
    ),
    "its row of policy is gone": (
        lambda call: Tool.objects.filter(name=call.tool).delete(),
        "tool_disabled",
    ),
    "this process does not know the tool": (
        lambda call: registry.unregister(call.tool),
        "unknown_tool",
    ),
}


@pytest.mark.parametrize(("change", "reason"), CHANGES.values(), ids=CHANGES)
def test_the_gate_refuses_and_says_why(
    steps: Steps, outside: Outside, change: Change, reason: str
) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    change(call)

    assert pass_gate(claim) is False

    assert (anew(call).state, anew(call).reason) == ("denied", reason)
    assert [event.data["reason"] for event in events(run, "call.denied")] == [reason]
    assert outside.attempts == []
    assert now(run).status == "running", "the model is told, and goes on"


def test_a_call_of_a_stopped_run_is_refused(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    steps.stop(run)

    assert pass_gate(claim) is False

    assert (anew(call).state, anew(call).reason) == ("voided", "stopped")
    assert [e.data["reason"] for e in events(run, "gate.refused")] == ["run_not_running"]


def test_a_claim_that_ran_out_opens_nothing_once_somebody_else_has_it(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    old = steps.claim(call)
    pass_time(call)
    new = steps.claim(call)

    assert pass_gate(old) is False
    assert [e.data["reason"] for e in events(run, "gate.refused")] == ["claim_lost"]
    assert pass_gate(new) is True


def test_the_gate_opens_once(steps: Steps) -> None:
    _run, (call,) = steps.running("test.book")
    claim = steps.claim(call)

    assert pass_gate(claim) is True
    assert pass_gate(claim) is False
    assert anew(call).state == "in_flight"


def test_a_read_needs_the_gate_as_well(steps: Steps, outside: Outside) -> None:
    run = steps.start()
    call = steps.propose(steps.think(run), "test.note")
    Tool.objects.filter(name="test.note").update(enabled=False)

    assert steps.act(call).reason == "tool_disabled"
    assert outside.attempts == []
    assert claim_call(call.pk, epoch=1) is None
