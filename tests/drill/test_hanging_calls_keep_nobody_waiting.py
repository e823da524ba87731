"""Every executor hangs over a call that was given up: others stand in, and new calls go out."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from agentruns.models import Agent, ToolCall
from agentruns.pausepoints import file_of
from agentruns.services.programs import WORKERS
from agentruns.services.stack import Stack
from tests.drill.over_http import Program, until
from tools.models import Tool

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]

PLACES = WORKERS["act"]
SOON = timedelta(seconds=5)  # a second or two where nothing else keeps the machine busy
AT = "call:1:sent"  # after the effect, before its outcome is on record


@pytest.fixture(scope="module")
def stack(scratch: Path) -> Iterator[Stack]:
    """One of its own, whose runs drain for a short time."""
    env = {"DRAIN_DEADLINE": "2", "ACT_PLACES": "6"}  # so that one person may hold all four
    with Stack(scratch / "hanging", durable=False, env=env) as running:
        yield running


@pytest.fixture
def hanging(stack: Stack, program: Program) -> Iterator[list[str]]:
    """As many runs as there are executors, each of which hangs in one's call."""
    Agent.objects.filter(slug__startswith="tier-").update(is_listed=True)
    runs: list[str] = []
    folder = Path(stack.env["PAUSE_DIR"])
    for _place in range(PLACES):
        runs.append(program.start("tier-compensable"))
        (folder / runs[-1]).mkdir()
        file_of(folder, runs[-1], AT, "hold").touch()
    until(
        lambda: [file_of(folder, run, AT, "reached").exists() for run in runs],
        all,
    )
    yield runs
    for run in runs:
        file_of(folder, run, AT, "hold").unlink()
    # Whoever hung has come back, and is gone; the others keep the places.
    until(lambda: executors(stack), lambda found: len(found) == PLACES)


def executors(stack: Stack) -> list[int]:
    return [child.pid for child in psutil.Process(stack.pids["act"]).children()]


def given_up(runs: list[str]) -> list[ToolCall]:
    """The hanging calls, once all of them are in doubt (or have been looked up since)."""
    found: list[ToolCall] = until(
        lambda: list(ToolCall.objects.filter(run__in=runs, number=1)),
        lambda calls: all(call.doubted_at for call in calls),
    )
    return found


def first_call(run: str) -> ToolCall:
    """The first call of a run, once it has gone out."""
    found: list[ToolCall] = until(
        lambda: list(ToolCall.objects.filter(run=run, number=1, gate_passed_at__isnull=False)),
        bool,
    )
    return found[0]


def test_a_new_run_acts_soon_after_stopped_runs_have_drained(
    stack: Stack, program: Program, hanging: list[str]
) -> None:
    before = executors(stack)
    for run in hanging:
        program.stop(run)
    new = program.start("tier-reversible")
    drained = given_up(hanging)
    call = first_call(new)

    assert call.gate_passed_at is not None
    assert call.gate_passed_at - min(each.doubted_at for each in drained if each.doubted_at) < SOON
    assert set(before) < set(executors(stack)), "none of the hanging ones was ended for it"
    program.wait(new, "completed")
    for run in hanging:
        program.wait(run, "stopped_clean")
    assert {call.state for call in given_up(hanging)} == {"landed"}


def test_without_a_stop_it_acts_soon_after_their_own_time_is_over(
    stack: Stack, program: Program, request: pytest.FixtureRequest
) -> None:
    Tool.objects.filter(name="chat.post_message").update(time_limit=1)
    hanging: list[str] = request.getfixturevalue("hanging")
    new = program.start("tier-reversible")
    late = given_up(hanging)
    call = first_call(new)

    assert call.gate_passed_at is not None
    assert call.gate_passed_at - min(each.doubted_at for each in late if each.doubted_at) < SOON
    program.wait(new, "completed")
    for run in hanging:  # it was looked up, and the run went on
        program.wait(run, "completed")
