"""The drill's end of the pause points: files that make workers say where they are, and wait."""

import os
import shutil
import signal
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from django.conf import settings
from django.utils.translation import gettext as _

from agentruns.drill.errors import DrillError
from agentruns.drill.points import Point
from agentruns.pausepoints import file_of
from agentruns.services.processes import MARK


class Steering:
    """Steers the workers of one run. Use it as a context: at the end every hold is let go."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._root = Path(settings.PAUSE_DIR) if settings.PAUSE_DIR else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._root is not None:
            shutil.rmtree(self._root / self._run_id, ignore_errors=True)

    def arm(self, point: Point) -> None:
        """Have whoever reaches `point` say so, and wait there until `release`.

        A driver that waits at a token still hears of Stop, and cuts the model off.
        """
        path = self._file(point, "hold")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def at(self, point: Point) -> int | None:
        """The number of the process that reached `point`, or None."""
        try:
            return int(self._file(point, "reached").read_text())
        except OSError:
            return None

    def release(self, point: Point) -> None:
        """Let go whoever waits at `point`."""
        self._file(point, "hold").unlink(missing_ok=True)

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
    """SIGKILL a worker of this stack. Raises DrillError if the process is none."""
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
