"""Exit 2 and one sentence on stderr; nothing on stdout, and no run left acting."""

import pytest

from agentruns.models import Run
from agentruns.services.stack import Stack
from tests.drill.drills import Drills, drill

NEVER_REACHED = {
    "--stop-at call:9:gate --scenario report": "call:9:gate. It made 3 calls and ended: completed",
    "--stop-at call:1:buffered --scenario report": "never came to call:1:buffered",
    "--stop-at token:99999 --scenario report": "never came to token:99999",
    "--kill-at call:9:sent --scenario report": "never came to call:9:sent",
}
MISTYPED = {
    "--stop-at call:x:gate": "There is no point “call:x:gate”. Points: never, before-start",
    "--scenario outbox": "There is no scenario “outbox”; known: ",
    "--kill-at never": "no worker comes to “never”",
    "--pending perhaps": "invalid choice: 'perhaps'",
}
DRILLS = [*NEVER_REACHED, *MISTYPED]

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("arguments", DRILLS)
def test_it_exits_2_with_the_reason(drills: Drills, arguments: str) -> None:
    played = drills[arguments]
    assert (played.code, played.out) == (2, "")
    assert (NEVER_REACHED | MISTYPED)[arguments] in played.err
    assert "Traceback" not in played.err


@pytest.mark.usefixtures("stack_db")
def test_workers_that_cannot_be_held_are_no_reason_to_leave_a_run_behind(stack: Stack) -> None:
    known = set(Run.objects.values_list("pk", flat=True))
    blind = Stack(stack.data_dir)
    blind.env = stack.env | {"PAUSE_DIR": ""}
    played = drill(blind, "--stop-at", "call:2:gate")
    assert (played.code, played.out) == (2, "")
    assert "PAUSE_DIR is not set" in played.err
    left = Run.objects.exclude(pk__in=known)
    assert [run.status for run in left if not run.has_ended] == []
