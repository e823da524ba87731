import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from agentruns.services import processes
from agentruns.services.processes import MARK, MAX_DEATHS, Process, Spec, end_leftovers

Eventually = Callable[[Callable[[], bool]], None]


def _spec(data_dir: Path, script: str) -> Spec:
    env = dict(os.environ) | {MARK: str(data_dir)}
    log = data_dir / "logs" / "program.log"
    return Spec("program", ["sh", "-c", script], env, data_dir, log)


def test_a_killed_process_is_started_again(data_dir: Path, eventually: Eventually) -> None:
    process = Process(_spec(data_dir, "exec sleep 60"))
    process.start()
    first = process.pid
    process.kill()
    eventually(lambda: process.pid not in (None, first))
    process.stop()
    assert process.pid is None


def test_one_that_gives_way_does_so_as_a_session_too(data_dir: Path) -> None:
    process = Process(replace(_spec(data_dir, "exec sleep 60"), niceness=7))
    process.start()
    try:
        assert psutil.Process(process.pid).nice() == 7
        # Where the kernel shares out the processor among sessions first, nothing else counts.
        session = Path(f"/proc/{process.pid}/autogroup")
        assert not session.exists() or session.read_text().split()[1:] == ["nice", "7"]
    finally:
        process.stop()


def test_stopping_ends_the_children_too(data_dir: Path, eventually: Eventually) -> None:
    process = Process(_spec(data_dir, "sleep 60 & echo $! > child; wait"))
    process.start()
    child = data_dir / "child"
    eventually(lambda: child.exists() and child.read_text().strip() != "")
    process.stop()
    eventually(lambda: not psutil.pid_exists(int(child.read_text())))


def test_one_that_will_not_end_is_ended_by_force(data_dir: Path, eventually: Eventually) -> None:
    process = Process(_spec(data_dir, "trap '' TERM; touch ready; while :; do sleep 60; done"))
    process.start()
    eventually((data_dir / "ready").exists)
    process.stop(grace=0.1)
    assert process.pid is None


def test_one_that_dies_again_and_again_is_given_up(
    data_dir: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "BACK_OFF", (0.01,))
    given_up: list[str] = []
    starts: list[str] = []
    process = Process(
        _spec(data_dir, "echo no luck; exit 1"),
        on_start=starts.append,
        on_give_up=given_up.append,
    )
    process.start()
    eventually(lambda: given_up == ["program"])
    assert len(starts) == MAX_DEATHS
    assert "no luck" in process.last_words()
    process.stop()


def test_kills_on_purpose_are_not_held_against_it(
    data_dir: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "BACK_OFF", (60.0,))
    starts: list[str] = []
    process = Process(_spec(data_dir, "exec sleep 60"), on_start=starts.append)
    process.start()
    for _ in range(MAX_DEATHS + 1):
        before = process.pid
        process.kill()
        eventually(lambda before=before: process.pid not in (None, before))
    eventually(lambda: len(starts) == MAX_DEATHS + 2)  # told a moment after it is there
    assert process.deaths == 0
    process.stop()


def test_a_stop_during_the_back_off_starts_nothing(
    data_dir: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "BACK_OFF", (60.0,))
    starts: list[str] = []
    process = Process(_spec(data_dir, "exit 1"), on_start=starts.append)
    process.start()
    eventually(lambda: process.deaths == 1)
    process.stop()
    assert starts == ["program"]


def test_output_is_logged_and_passed_on(data_dir: Path, eventually: Eventually) -> None:
    lines: list[tuple[str, str]] = []
    spec = _spec(data_dir, "echo hello; exec sleep 60")
    process = Process(spec, on_line=lambda name, line: lines.append((name, line)))
    process.start()
    eventually(lambda: lines == [("program", "hello\n")])
    process.stop()
    assert spec.log.read_text() == "hello\n"


def test_what_a_killed_supervisor_left_behind_is_ended(data_dir: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (
        subprocess.Popen(command, env=dict(os.environ) | {MARK: str(data_dir)}) as orphan,
        subprocess.Popen(command, env=dict(os.environ) | {MARK: str(data_dir / "x")}) as other,
    ):
        assert end_leftovers(data_dir) == 1
        assert not psutil.pid_exists(orphan.pid)
        assert other.poll() is None
        other.kill()
