"""Drills as people start them: the command, as a process of its own, on the test run's stack."""

import json
import subprocess
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from agentruns.services.programs import BASE_DIR, MANAGE
from agentruns.services.stack import Stack

AT_ONCE = 4
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


class Drills:
    """Some drills, a few at once; each starts when somebody first asks for any of them. Some are
    alone: a fault waits for the next effect, whoever's it is, and a place that is free again rings
    also for a run that only the sweeper should find.
    """

    def __init__(self, pool: ThreadPoolExecutor, stack: Stack, wanted: list[str]) -> None:
        self._pool = pool
        self._stack = stack
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
                    self._begun[each] = self._pool.submit(drill, self._stack, *each.split())
        return self._begun[arguments].result()


def is_alone(arguments: str) -> bool:
    return any(each in arguments for each in ALONE)


MakeDrills = Callable[[list[str]], Drills]
