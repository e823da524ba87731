"""A5, point 9: arguments that were changed in the database are not sent, and people who were
deactivated since have no say.
"""

import json

import pytest
import structlog
from django.contrib.auth.models import User

from agentruns.models import ToolCall
from agentruns.planner.history import result_words
from agentruns.protocol.gate import pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, now, pass_time
from tests.forging import forge
from tools import registry
from tools.digest import args_digest

OTHER = json.dumps({"what": "all of it", "count": 1})


def change_args(call: ToolCall) -> None:
    forge("UPDATE agentruns_toolcall SET args = args || %s::jsonb WHERE id = %s", OTHER, call.pk)


@pytest.mark.breaks_ledger
@pytest.mark.parametrize("tool", ["test.send", "test.draft", "test.book", "test.sign"])
def test_arguments_changed_since_are_refused_and_an_alarm_is_raised(
    steps: Steps, outside: Outside, tool: str
) -> None:
    run = steps.start()
    lease = steps.think(run)
    more = {"token": "a secret"} if tool == "test.sign" else {}
    call = steps.propose(lease, tool, **more)
    steps.finish(lease)
    if anew(call).state == "awaiting_approval":
        steps.approve(anew(call))
    change_args(call)

    with structlog.testing.capture_logs() as logs:
        call = steps.act(call)

    assert (call.state, call.reason) == ("denied", "args_changed")
    assert outside.attempts == []
    assert [event.data for event in events(run, "call.denied")] == [{"reason": "args_changed"}]
    alarms = [each for each in logs if each["event"] == "call.args_changed"]
    assert [each["log_level"] for each in alarms] == ["error"]
    assert result_words(call) == ("Not executed: its arguments are not those that you wrote.")


@pytest.mark.breaks_ledger
def test_arguments_changed_while_a_draft_is_held_back_are_refused(
    steps: Steps, outside: Outside
) -> None:
    _run, (call,) = steps.running("test.later")
    if call.state == "awaiting_approval":
        call = steps.approve(call)
    assert steps.act(call).state == "prepared"
    change_args(call)
    pass_time(call)

    assert steps.act(call).reason == "args_changed"
    assert outside.attempts == []


@pytest.mark.breaks_ledger
def test_a_draft_changed_while_it_is_held_back_is_not_sent(steps: Steps, outside: Outside) -> None:
    _run, (call,) = steps.running("test.later")
    if call.state == "awaiting_approval":
        call = steps.approve(call)
    assert steps.act(call).state == "prepared"
    forge('UPDATE agentruns_toolcall SET draft = \'{"key": "other"}\' WHERE id = %s', call.pk)
    pass_time(call)

    with structlog.testing.capture_logs() as logs:
        call = steps.act(call)

    assert (call.state, call.reason) == ("failed", "draft_changed")
    assert outside.attempts == []
    assert "call.draft_changed" in [each["event"] for each in logs]


@pytest.mark.breaks_ledger
def test_arguments_and_their_digest_changed_together_are_not_what_was_approved(
    steps: Steps, outside: Outside
) -> None:
    _run, (call,) = steps.running("test.send")
    call = steps.approve(call)
    change_args(call)
    registered = registry.get(call.tool)
    assert registered is not None
    digest = args_digest(anew(call).arguments(registered))
    forge("UPDATE agentruns_toolcall SET args_digest = %s WHERE id = %s", digest, call.pk)

    assert steps.act(call).reason == "needs_consent"
    assert outside.attempts == []


def test_an_approver_who_was_deactivated_since_does_not_count(
    steps: Steps, outside: Outside, reviewer: User
) -> None:
    """attack.md 11: like one who has left the group."""
    run, (call,) = steps.running("test.send")
    call = steps.approve(call, by=reviewer)
    claim = steps.claim(call)
    User.objects.filter(pk=reviewer.pk).update(is_active=False)

    assert pass_gate(claim) is False

    assert (anew(call).state, anew(call).reason) == ("denied", "needs_consent")
    assert outside.attempts == []
    assert now(run).status == "running"
