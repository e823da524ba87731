"""Drills as people start them, each in a process of its own, on the test run's stack."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentruns.services.programs import BASE_DIR, MANAGE
from agentruns.services.stack import Stack

AT_ONCE = 4
LOADED_IN = 60.0  # seconds
ALONE = ("--fault", "sweep:silent")


@dataclass(frozen=True)
class Outcome:
    """How a drill ended, and its report if it printed one."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        assert self.code == 0, f"exit {self.code}\n{self.err}\n{self.out}"
        report: dict[str, Any] = json.loads(self.out)
        return report

    def tools(self, group: str) -> list[str]:
        """The tools of the calls in a group, in order."""
        return [call["tool"] for call in self.report["groups"][group]]

    def effects(self) -> dict[str, int]:
        """How many effects the world recorded, per tool."""
        return {tool: len(found) for tool, found in self.report["world"].items()}


def drill(stack: Stack, *arguments: str) -> Outcome:
    """`manage.py drill --json <arguments>`, to its end."""
    done = subprocess.run(
        [*MANAGE, "drill", "--json", *arguments],
        env=stack.env,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@contextmanager
def loaded(stack: Stack, path: Path) -> Iterator[Path]:
    """The socket at `path`, at which a loaded process forks for each drill (forking.py)."""
    command = [sys.executable, "-m", "tests.drill.forking", str(path)]
    with subprocess.Popen(
        command, env=stack.env, cwd=BASE_DIR, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as process:
        try:
            deadline = time.monotonic() + LOADED_IN
            while not path.exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield path
        finally:
            process.terminate()


def forked(path: Path, *arguments: str) -> Outcome:
    """As `drill`, by the process at the socket `path`."""
    with socket.socket(socket.AF_UNIX) as asking, asking.makefile("rwb") as lines:
        asking.connect(str(path))
        lines.write(json.dumps(["--json", *arguments]).encode() + b"\n")
        lines.flush()
        return Outcome(*json.loads(lines.readline()))


class Drills:
    """Some drills, a few at once; each starts when somebody first asks for any of them. Some are
    alone: a fault waits for the next effect, whoever's it is, and a place that is free again rings
    also for a run that only the sweeper should find.
    """

    def __init__(self, pool: ThreadPoolExecutor, path: Path, wanted: list[str]) -> None:
        self._pool = pool
        self._path = path
        self._wanted = wanted
        self._begun: dict[str, Future[Outcome]] = {}

    def __getitem__(self, arguments: str) -> Outcome:
        if arguments not in self._begun:
            together = [each for each in self._wanted if not is_alone(each)]
            if is_alone(arguments):
                wait(self._begun.values())
                together = []
            for each in (arguments, *together):
                if each not in self._begun:
                    self._begun[each] = self._pool.submit(forked, self._path, *each.split())
        return self._begun[arguments].result()


def is_alone(arguments: str) -> bool:
    return any(each in arguments for each in ALONE)
