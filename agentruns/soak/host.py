"""The host: has the stack, and breaks it on purpose while the player plays on it.

What the player says comes line by line, as JSON: `playing` once it has begun, `progress`, `kill`
with the number of a process that stands at a pause point, and at last its `report`. It plays until
its stdin is closed.
"""

import json
import math
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from agentruns.services.errors import ServiceError
from agentruns.services.programs import BASE_DIR, MANAGE, WORKERS
from agentruns.services.stack import Stack
from agentruns.soak.plan import Blow, blows

# Short, so that what has to time out does so many times in a soak.
PACE = {
    "RUNS_PER_PERSON": "0",
    "STARTS_PER_MINUTE": "0",
    "MODEL_PACE": "0.7",
    "LEASE_TTL": "3",
    "CLAIM_TTL": "5",
    "DRAIN_DEADLINE": "10",
    "APPROVAL_TTL": "12",
    "LOOKUP_HORIZON_SCALE": "0.02",
    "LOG_LEVEL": "ERROR",
}
WORKER_KILLED = tuple(f"{name} killed" for name in ("child", *WORKERS))
PLAY = "--play"
UP_FOR_DOWN = 3.0  # how much longer something is left alone than it took to come back
BEGIN_WITHIN = 120.0  # seconds
GIVE_UP_AFTER = 900.0  # seconds that the end may take: it verifies every run
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wish:
    """What the person at the terminal asked for."""

    minutes: float
    seed: int
    per_second: float
    at_once: int


class SoakError(ServiceError):
    """The soak could not be played to its end; nothing is left running."""

    code = "soak_not_played"


class Host:
    """One soak. Use it as a context: at the end nothing is left running."""

    def __init__(self, wish: Wish, data_dir: Path, say: Say) -> None:
        self._wish = wish
        self._say = say
        self._lost: list[str] = []
        self._stack = Stack(
            data_dir, web=False, durable=False, env=PACE, on_give_up=self._lost.append
        )
        self._blows: Counter[str] = Counter()
        self._spared_until: dict[str, float] = {}
        self._minutes = 0.0  # of play
        self._playing = threading.Event()
        self._ended = threading.Event()
        self._report: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        self._stack.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.stop()

    def soak(self) -> dict[str, Any]:
        """Play, break, and report. Ctrl-C is the end of the play, and not of the report."""
        with self._player() as player:
            hearing = threading.Thread(target=self._hear, args=(player,), daemon=True)
            hearing.start()
            try:
                self._break_things(self._wish.minutes * 60)
            except KeyboardInterrupt:
                self._say("Ctrl-C: this is the end of the play. The report follows.")
            try:
                self._end(player)
            finally:
                player.kill()
            hearing.join()
        if self._report is None:
            raise SoakError("The player ended without a report; its words are above.")
        return {
            "seed": self._wish.seed,
            "minutes": self._minutes,
            "kills": self._kills(),
            "restarts": self._restarts(),
            "blows": dict(self._blows),
            "given_up": self._lost,
            **self._report,
        }

    def _player(self) -> "subprocess.Popen[str]":
        wish = {**vars(self._wish), "pause_dir": self._stack.env["PAUSE_DIR"]}
        return subprocess.Popen(
            [*MANAGE, "soak", PLAY, json.dumps(wish)],
            # The player is at no pause point itself: it would wait for itself there.
            env=self._stack.env | {"PAUSE_DIR": ""},
            cwd=BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _hear(self, player: "subprocess.Popen[str]") -> None:
        assert player.stdout is not None
        for line in player.stdout:
            heard = json.loads(line)
            if "kill" in heard:
                self._kill_at_point(heard["kill"])
            if "progress" in heard:
                self._say(f"{heard['progress']}  kills {self._kills()}")
            if "playing" in heard:
                self._playing.set()
            self._report = heard.get("report", self._report)
        self._playing.set()
        self._ended.set()

    def _end(self, player: "subprocess.Popen[str]") -> None:
        """Let the player come to its end: everything stopped, settled, verified."""
        assert player.stdin is not None
        player.stdin.close()
        if not self._ended.wait(GIVE_UP_AFTER):
            raise SoakError("The player does not come to an end.")

    # --- Breaking ----------------------------------------------------------
    def _break_things(self, seconds: float) -> None:
        if not self._playing.wait(BEGIN_WITHIN):
            raise SoakError("The player does not begin.")
        began = time.monotonic()
        try:
            for blow in blows(self._wish.seed):
                pause = min(blow.at, seconds) - (time.monotonic() - began)
                if self._ended.wait(max(0.0, pause)):
                    raise SoakError("The player has ended too early; its words are above.")
                if blow.at >= seconds:
                    return
                self._strike(blow)
        finally:
            self._minutes = round((time.monotonic() - began) / 60, 1)

    def _strike(self, blow: Blow) -> None:
        if blow.kind == "child":
            self._kill_child(blow.pick)
        else:
            self._take_down(blow.kind, is_orderly=blow.is_orderly)

    def _take_down(self, name: str, *, is_orderly: bool = False, where: str = "") -> None:
        """End it, and wait aside until it is back. What is not back, or has not been for long, is
        left alone: the system has to come to work in between, on slow machines too.
        """
        if time.monotonic() < self._spared_until.get(name, 0.0):
            return
        self._spared_until[name] = math.inf
        self._note(f"{name} restarted" if is_orderly else f"{name} killed{where}")

        def come_back() -> None:
            began = time.monotonic()
            try:
                if is_orderly:
                    self._stack.restart(name)
                else:
                    self._stack.kill(name)
                    self._stack.wait_for(name)
            except ServiceError as error:
                self._lost.append(f"{name}: {error}")
            now = time.monotonic()
            self._spared_until[name] = now + UP_FOR_DOWN * (now - began)
            self._log(f"{name} is back after {now - began:.1f} s")

        threading.Thread(target=come_back, daemon=True).start()

    def _kill_child(self, pick: float) -> None:
        """One process of the pool that executes calls."""
        leader = self._stack.pids.get("act")
        is_back = self._spared_until.get("act", 0.0) < math.inf
        children = _children(leader) if leader and is_back else []
        if children:
            self._kill_process(children[int(pick * len(children))])

    def _kill_at_point(self, pid: int) -> None:
        """A worker of this stack, by number: what is none is left alone."""
        for name in WORKERS:
            leader = self._stack.pids.get(name)
            if leader == pid:
                self._take_down(name, where=" at a point")
            elif leader and pid in _children(leader):
                self._kill_process(pid, " at a point")

    def _kill_process(self, pid: int, where: str = "") -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._note(f"child killed{where}")

    def _note(self, what: str) -> None:
        self._blows[what] += 1
        self._log(what)

    def _log(self, what: str) -> None:
        with (self._stack.data_dir / "logs" / "soak.log").open("a") as log:
            log.write(f"{datetime.now(UTC):%H:%M:%S.%f} {what}\n")

    def _kills(self) -> int:
        """Workers that died by kill -9."""
        return sum(self._blows[what] for what in self._blows if what.startswith(WORKER_KILLED))

    def _restarts(self) -> int:
        """PostgreSQL, Valkey or the world ended, by kill -9 or in good order, and came back."""
        return self._blows.total() - self._kills()


def _children(pid: int) -> list[int]:
    try:
        return sorted(child.pid for child in psutil.Process(pid).children())
    except psutil.Error:
        return []
