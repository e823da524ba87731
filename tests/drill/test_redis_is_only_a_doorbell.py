"""Redis dies, or hangs, in the middle of a run (R82): it goes on, and Stop does without it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agentruns.services.stack import Stack
from tests.drill.over_http import Program

pytestmark = pytest.mark.stack


@contextmanager
def hanging(pid: int) -> Iterator[None]:
    """The process keeps its connections and answers nothing."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_run_goes_on_once_redis_is_back(stack: Stack, program: Program) -> None:
    run_id = program.start("ticket")
    program.generating(run_id, turn=0, tokens=5)
    stack.kill("valkey")
    run = program.wait(run_id, "completed", "failed")
    assert run["status"] == "completed"
    assert [each["state"] for each in run["groups"]["done"]] == ["landed"] * 4


def test_stop_is_answered_and_settles_while_redis_hangs(stack: Stack, program: Program) -> None:
    run_id = program.start("inbox")
    program.generating(run_id, turn=1, tokens=5)
    with hanging(stack.pids["valkey"]):
        answer = program.stop(run_id)
        assert answer["won_by"] == "stop"
        program.wait(run_id, "stopped_clean")
        assert program.generated(run_id)[-1].end == "closed_by_client"
    assert program.stop(run_id) == answer


def test_stop_is_answered_and_settles_when_redis_was_killed(stack: Stack, program: Program) -> None:
    run_id = program.start("inbox")
    program.generating(run_id, turn=1, tokens=5)
    stack.kill("valkey")
    answer = program.stop(run_id)
    assert answer["won_by"] == "stop"
    program.wait(run_id, "stopped_clean")
    stack.wait_for("valkey")
    assert program.stop(run_id) == answer
