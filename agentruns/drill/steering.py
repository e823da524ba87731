"""The drill's end of the pause points: files that make workers say where they are, and wait."""

import json
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.utils.translation import gettext as _

from agentruns.drill.errors import DrillError
from agentruns.drill.points import Point
from agentruns.pausepoints import file_of
from agentruns.services.processes import MARK


@dataclass(frozen=True)
class Reached:
    """Who stands at a point. `task` is "" for whoever is no worker."""

    pid: int
    task: str
    args: tuple[Any, ...]


class Steering:
    """Steers the workers of one run. `clear` it at the end: a hold that is left keeps a worker."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._root = Path(settings.PAUSE_DIR) if settings.PAUSE_DIR else None

    def clear(self) -> None:
        """Let go of every hold, and forget what was reached."""
        if self._root is not None:
            shutil.rmtree(self._root / self._run_id, ignore_errors=True)

    def hold(self, point: Point) -> None:
        """Have the first who reaches `point` say so, and wait there until `release`.

        A driver that waits at a token still hears of Stop, and cuts the model off.
        """
        self._set(point, "hold")

    def lose(self, point: Point) -> None:
        """Have whoever reaches `point` ring no doorbell until its next point."""
        self._set(point, "lose")

    def at(self, point: Point) -> Reached | None:
        """Who reached the held `point`, or None."""
        try:
            who = json.loads(self._file(point, "reached").read_text())
        except OSError:
            return None
        return Reached(who["pid"], who["task"], tuple(who["args"]))

    def lost(self, point: Point) -> int | None:
        """How many doorbells were lost from `point` on; None if nobody came there."""
        try:
            return len(self._file(point, "lost").read_text().splitlines())
        except OSError:
            return None

    def release(self, point: Point) -> None:
        """Let go whoever waits at `point`."""
        self._file(point, "hold").unlink(missing_ok=True)

    def _set(self, point: Point, what: str) -> None:
        path = self._file(point, what)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def _file(self, point: Point, what: str) -> Path:
        if self._root is None:
            raise DrillError(
                _(
                    "These workers cannot be stopped at a point: PAUSE_DIR is not set for them. "
                    "“make up” sets it in a demo."
                )
            )
        return file_of(self._root, self._run_id, point.text, what)


def kill_worker(pid: int) -> None:
    """SIGKILL a process of this stack. Raises DrillError if it is none."""
    try:
        is_ours = psutil.Process(pid).environ().get(MARK) == str(settings.DATA_DIR)
    except (psutil.Error, OSError):
        is_ours = False
    if not is_ours:
        raise DrillError(
            _("Process %(pid)d is no worker of the stack in %(folder)s, so it is left alone.")
            % {"pid": pid, "folder": settings.DATA_DIR}
        )
    os.kill(pid, signal.SIGKILL)
