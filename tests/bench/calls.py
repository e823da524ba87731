"""(a) One durable call of ours, one DBOS step, one LangGraph node, in turn: A B C A B C …

Whatever else the machine does meanwhile hits all of them alike.
"""

import importlib
import importlib.util
import time
from collections import defaultdict
from typing import Any, Protocol

from django.db import connection

from agentruns.protocol.execute import execute_call
from tests.bench.play import EFFECT, Player

CALLS_IN_A_TURN = 5
WARM_UP = 2  # rounds, not counted
LIBRARIES = ("dbos", "langgraph")

Times = dict[str, list[float]]


class Contestant(Protocol):
    def round(self, steps: int) -> Times:
        """Do so many durable steps, one after another; the seconds of each, by what it is."""


def measure(*, rounds: int, steps: int) -> Times:
    """Seconds of every step. A library that is not installed does not take part."""
    contestants: list[Contestant] = [Ours()]
    for name in LIBRARIES:
        if importlib.util.find_spec(name):
            contestants.append(importlib.import_module(f"tests.bench.with_{name}").contestant())
    times: Times = defaultdict(list)
    for number in range(WARM_UP + rounds):
        for contestant in contestants:
            for name, seconds in contestant.round(steps).items():
                times[name] += seconds if number >= WARM_UP else []
    return times


class Ours:
    """A run of several turns; in each the model asks for a few effects, and they are done.

    `call` is what the worker does for one call: claim, gate, effect, outcome. `bells` is the time
    after the commits in which it rings doorbells through Redis; `call` is without it. `intent` is
    the driver's part before: the call is written into the ledger while the answer streams.
    """

    def __init__(self) -> None:
        self.player = Player()
        self.bells = BellTimer()

    def round(self, steps: int) -> Times:
        times: Times = defaultdict(list)
        lease = self.player.pick_up()
        for begin in range(0, steps, CALLS_IN_A_TURN):
            if begin:
                lease = self.player.think(lease.run_id)
            calls = []
            for _ in range(min(CALLS_IN_A_TURN, steps - begin)):
                calls.append(self._timed(times, "intent", self.player.propose, lease, EFFECT))
            self.player.finish(lease)
            for call in calls:
                self._timed(times, "call", execute_call, call.pk, epoch=1)
        return times

    def _timed(self, times: Times, name: str, do: Any, *args: Any, **more: Any) -> Any:
        self.bells.seconds = 0.0
        began = time.perf_counter()
        done = do(*args, **more)
        took = time.perf_counter() - began
        times[name].append(took - self.bells.seconds)
        times[f"{name} bells"].append(self.bells.seconds)
        return done


class BellTimer:
    """Takes the time of what this connection does after its commits: ringing, and nothing else."""

    def __init__(self) -> None:
        self.seconds = 0.0
        ring = connection.run_and_clear_commit_hooks

        def timed() -> None:
            began = time.perf_counter()
            ring()
            self.seconds += time.perf_counter() - began

        setattr(connection, "run_and_clear_commit_hooks", timed)  # noqa: B010
