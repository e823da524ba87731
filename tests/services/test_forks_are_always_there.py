"""Real processes: whatever ends, and however, there are as many as there should be, or none."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from django.core.management import CommandError, call_command

KEPT = """
import os, pathlib, signal, sys, time
from agentruns.services.forks import Forks

folder = pathlib.Path(sys.argv[1])

def work(number):
    %s
    (folder / f"{os.getpid()}.{number}").touch()
    %s

forks = Forks(2, work, say=lambda text: print(text, flush=True))
forks.keep()
print("all have ended", flush=True)
"""
Start = Callable[..., "subprocess.Popen[str]"]
Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    parents = []

    def starting(work: str, before: str = "pass") -> "subprocess.Popen[str]":
        argv = [sys.executable, "-c", KEPT % (before, work), str(tmp_path)]
        parents.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        return parents[-1]

    yield starting
    for parent in parents:
        parent.kill()
        parent.communicate()


def born(folder: Path) -> dict[int, int]:
    """Every process that began to work, and its number."""
    return {int(path.stem): int(path.suffix[1:]) for path in folder.iterdir()}


def test_one_that_is_killed_has_an_heir_with_its_number(
    start: Start, tmp_path: Path, eventually: Eventually
) -> None:
    parent = start("signal.pause()")
    eventually(lambda: len(born(tmp_path)) == 2)
    first = born(tmp_path)
    victim = next(iter(first))
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(born(tmp_path)) == 3)
    heir = (born(tmp_path).keys() - first.keys()).pop()
    assert born(tmp_path)[heir] == first[victim]
    assert {child.pid for child in psutil.Process(parent.pid).children()} == (
        first.keys() - {victim} | {heir}
    )
    parent.terminate()
    assert parent.stdout
    assert f"process {first[victim]} ended: SIGKILL" in parent.stdout.read()


def test_one_that_fails_has_an_heir_too(
    start: Start, tmp_path: Path, eventually: Eventually
) -> None:
    start("sys.exit(3)")
    eventually(lambda: len(born(tmp_path)) > 2)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_end_of_the_parent_is_the_end_of_all(
    start: Start, tmp_path: Path, eventually: Eventually, ending: signal.Signals
) -> None:
    parent = start("signal.pause()")
    eventually(lambda: len(born(tmp_path)) == 2)
    parent.send_signal(ending)
    assert parent.wait(10) == 0
    assert parent.stdout
    assert parent.stdout.read() == "all have ended\n"
    assert not any(psutil.pid_exists(pid) for pid in born(tmp_path))


def test_none_outlives_a_parent_that_was_killed(
    start: Start, tmp_path: Path, eventually: Eventually
) -> None:
    parent = start("signal.pause()")
    eventually(lambda: len(born(tmp_path)) == 2)
    parent.kill()
    eventually(lambda: not any(map(is_alive, born(tmp_path))))


def test_the_end_waits_for_the_work_that_is_being_done(
    start: Start, tmp_path: Path, eventually: Eventually
) -> None:
    """As Celery's worker does: it handles SIGTERM, and ends after the task."""
    parent = start(
        "while not told: time.sleep(0.01)\n    print('done')",
        before="told = []; signal.signal(signal.SIGTERM, lambda *_: told.append(1))",
    )
    eventually(lambda: len(born(tmp_path)) == 2)
    parent.terminate()
    assert parent.wait(10) == 0
    assert parent.stdout
    assert sorted(parent.stdout.read().splitlines()) == ["all have ended", "done", "done"]


HELD_UP = "forks.held_up()\n    signal.pause()"


def test_one_that_is_held_up_has_an_heir_and_goes_on(
    start: Start, tmp_path: Path, eventually: Eventually
) -> None:
    parent = start(f"number == 1 and len(list(folder.iterdir())) < 3 and {HELD_UP}")
    eventually(lambda: sorted(born(tmp_path).values()) == [1, 1, 2])
    assert all(map(is_alive, born(tmp_path)))
    held_up = min(pid for pid, number in born(tmp_path).items() if number == 1)
    os.kill(held_up, signal.SIGKILL)
    eventually(lambda: not is_alive(held_up))
    parent.terminate()
    assert parent.stdout
    assert parent.stdout.read().splitlines() == [
        "process 1 is held up: another one stands in for it",
        "all have ended",
    ]
    assert len(born(tmp_path)) == 3


def test_of_too_many_that_are_held_up_the_oldest_is_killed(
    start: Start, tmp_path: Path, eventually: Eventually
) -> None:
    """Two have their places, and two at most are held up beside them."""
    start(f"number == 1 and len(list(folder.iterdir())) < 5 and {HELD_UP}")
    eventually(lambda: sorted(born(tmp_path).values()) == [1, 1, 1, 1, 2])
    ones = [pid for pid, number in sorted(born(tmp_path).items()) if number == 1]
    eventually(lambda: [is_alive(pid) for pid in ones] == [False, True, True, True])


@pytest.mark.parametrize("count", ["0", "-1", "1000000", "many"])
def test_a_count_that_makes_no_sense_is_refused(count: str) -> None:
    with pytest.raises(CommandError, match="--count"):
        call_command("executors", f"--count={count}")


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
