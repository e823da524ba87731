"""Named pause points: the moments between two steps, at which a test or a drill can look in.

In production there is no handler, and a point costs one comparison. Tests install a handler in
their own process. Drills work across processes by files: a file `<run>/<point>.hold` in PAUSE_DIR
makes whoever reaches that point write `<point>.reached` (its process id) and wait until the hold
is gone. Every wait has a deadline.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

HOLD_LIMIT = 60.0  # seconds; a forgotten hold must not keep a worker for ever

Handler = Callable[[str, str], None]
handler: Handler | None = None
_held = threading.local()


def reach(run_id: str, point: str) -> None:
    """Say that `run_id` is at `point`, and wait there if somebody asked for it."""
    if handler is not None:
        since = time.monotonic()
        handler(run_id, point)
        _held.seconds = _seconds_held() + time.monotonic() - since


def clock() -> float:
    """This thread's monotonic seconds, less those for which somebody held it at a point."""
    return time.monotonic() - _seconds_held()


def _seconds_held() -> float:
    return float(getattr(_held, "seconds", 0.0))


def is_on() -> bool:
    return handler is not None


def file_of(folder: Path, run_id: str, point: str, what: str) -> Path:
    """The file of a point; `what` is hold or reached."""
    return folder / run_id / f"{point.replace(':', '_')}.{what}"


def file_handler(folder: Path) -> Handler:
    """The handler that a drill steers by files in `folder`."""

    def at_point(run_id: str, point: str) -> None:
        hold = file_of(folder, run_id, point, "hold")
        if not hold.exists():
            return
        partial = file_of(folder, run_id, point, f"{os.getpid()}.partial")
        with contextlib.suppress(OSError):  # the drill has just cleared its files away
            partial.write_text(str(os.getpid()))
            partial.rename(file_of(folder, run_id, point, "reached"))
        deadline = time.monotonic() + HOLD_LIMIT
        while hold.exists() and time.monotonic() < deadline:
            time.sleep(0.002)

    return at_point


def install_from_settings() -> None:
    """Called once per process, at start."""
    global handler
    if settings.PAUSE_DIR:
        handler = file_handler(Path(settings.PAUSE_DIR))
