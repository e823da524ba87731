"""Hold threads at named pause points, so that a race happens in the order that a test names."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from django.db import connection

from agentruns import pausepoints

PATIENCE = 20.0  # seconds; a test that waits longer has failed

T = TypeVar("T")


@dataclass
class Hold:
    """One point of one run, at which whoever comes waits until `release`."""

    is_reached: threading.Event = field(default_factory=threading.Event)
    is_released: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Until somebody stands at the point."""
        assert self.is_reached.wait(PATIENCE), "nobody came to the pause point"

    def release(self) -> None:
        self.is_released.set()


class Pauses:
    """The handler of one test, with every point that was passed, in order."""

    def __init__(self) -> None:
        self.passed: list[tuple[str, str]] = []
        self._holds: dict[tuple[str, str], Hold] = {}

    def hold(self, run_id: str, point: str) -> Hold:
        """From now on, whoever reaches `point` of the run waits there."""
        return self._holds.setdefault((run_id, point), Hold())

    def release_all(self) -> None:
        for hold in self._holds.values():
            hold.release()

    def reach(self, run_id: str, point: str) -> None:
        self.passed.append((run_id, point))
        if hold := self._holds.get((run_id, point)):
            hold.is_reached.set()
            assert hold.is_released.wait(PATIENCE), f"never released from {point}"


@contextmanager
def pausing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pauses]:
    """Install the handler for a test; nobody stays held at its end."""
    pauses = Pauses()
    monkeypatch.setattr(pausepoints, "handler", pauses.reach)
    try:
        yield pauses
    finally:
        pauses.release_all()


@contextmanager
def in_background(function: Callable[..., T], *args: Any, **kwargs: Any) -> Iterator["Future[T]"]:
    """Run `function` in a thread of its own; at the latest at the end it is waited for."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool.submit(_apart, function, *args, **kwargs)


def at_once(functions: list[Callable[[], T]]) -> list[T]:
    """Start every function at the same moment, each in a thread; their results, in order."""
    barrier = threading.Barrier(len(functions))

    def run(function: Callable[[], T]) -> T:
        barrier.wait(PATIENCE)
        return function()

    with ThreadPoolExecutor(max_workers=len(functions)) as pool:
        futures = [pool.submit(_apart, run, function) for function in functions]
        return [future.result(PATIENCE) for future in futures]


def _apart(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """A thread has a database connection of its own, and gives it back."""
    try:
        return function(*args, **kwargs)
    finally:
        connection.close()
