"""Exit 2 and one sentence on stderr; nothing on stdout, and no run left acting."""

import pytest

from agentruns.drill.points import PATTERNS
from agentruns.management.commands.drill import Command
from agentruns.models import Run
from agentruns.services.stack import Stack
from tests.drill.drills import Drills, drill

NEVER_REACHED = {
    "--stop-at call:9:gate --scenario report": "call:9:gate. It made 3 calls and ended: completed",
    "--stop-at call:1:buffered --scenario report": "never came to call:1:buffered",
    "--kill-at call:9:sent --scenario report": "never came to call:9:sent",
    "--lose-at call:9:sent --scenario report": "never came to call:9:sent",
    "--twice-at stop:begin --scenario report": "never came to stop:begin",
}
MISTYPED = {
    "--stop-at call:x:gate": "There is no point “call:x:gate”. Points: never, before-start",
    "--scenario outbox": "There is no scenario “outbox”; known: ",
    "--parent outbox": "There is no scenario “outbox”; known: ",
    "--kill-at never": "nobody comes to “never”",
    "--fault mail=drop": "“mail=drop” is no fault. TOOL is one of email.send, ",
    "--fault email.send=explode": "KIND is one of refuse, busy, slow, hang, drop, error",
    "--fault git.open_draft=busy": "git cannot be busy",
    "--pending perhaps": "invalid choice: 'perhaps'",
}
DRILLS = list(NEVER_REACHED)


@pytest.mark.parametrize("arguments", MISTYPED)
def test_what_is_mistyped_is_refused_before_anything_is_started(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "drill", *arguments.split()])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert MISTYPED[arguments] in printed.err


def test_the_points_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "drill", "--list-points"])
    assert ended.value.code == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(PATTERNS)


@pytest.mark.stack
@pytest.mark.parametrize("arguments", DRILLS)
def test_a_point_that_the_run_never_comes_to_is_named(drills: Drills, arguments: str) -> None:
    played = drills[arguments]
    assert (played.code, played.out) == (2, "")
    assert NEVER_REACHED[arguments] in played.err
    assert "Traceback" not in played.err


@pytest.mark.stack
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
