"""B1: Stop says success, and later steps run. Not here."""

import pytest

from agentruns.models import LedgerEvent, ToolCall
from agentruns.services.stack import Stack
from tests.drill.drills import drill

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("stack_db")]


def test_no_later_step_passes_the_gate(stack: Stack) -> None:
    """Six steps are planned; Stop comes while the second is on its way."""
    played = drill(stack, "--stop-at", "call:2:gate")
    run_id = played.report["run_id"]
    passed = LedgerEvent.objects.filter(run=run_id, kind="call.commit_allowed")
    assert sorted(passed.values_list("call__number", flat=True)) == [1, 2]
    assert not ToolCall.objects.filter(run=run_id, number__gt=2, gate_passed_at__isnull=False)
    assert played.effects() == {"calendar.create_event": 1}


def test_what_had_not_started_can_be_kept_for_a_person(stack: Stack) -> None:
    played = drill(stack, "--stop-at", "call:2:gate", "--pending", "freeze")
    [kept] = played.report["groups"]["never_started"]
    assert (kept["tool"], kept["state"]) == ("email.send", "frozen")
    assert played.effects() == {"calendar.create_event": 1}
