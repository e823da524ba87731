"""Named pause points: the moments between two steps, at which a test or a drill can look in.

In production there is no handler, and a point costs one comparison. Tests install a handler in
their own process. Drills work across processes by files: a file `<run>/<point>.hold` in PAUSE_DIR
makes whoever reaches that point write `<point>.reached` (its process id) and wait until the hold
is gone; `<point>.watch` only has it written. Every wait has a deadline.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

HOLD_LIMIT = 60.0  # seconds; a forgotten hold must not keep a worker for ever

Handler = Callable[[str, str], None]
handler: Handler | None = None


def reach(run_id: str, point: str) -> None:
    """Say that `run_id` is at `point`, and wait there if somebody asked for it."""
    if handler is not None:
        handler(run_id, point)


def is_on() -> bool:
    return handler is not None


def file_handler(folder: Path) -> Handler:
    """The handler that a drill steers by files in `folder`."""

    def at_point(run_id: str, point: str) -> None:
        name = folder / run_id / point.replace(":", "_")
        hold, watch = name.with_suffix(".hold"), name.with_suffix(".watch")
        if not (hold.exists() or watch.exists()):
            return
        reached = name.with_suffix(".reached")
        partial = reached.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(str(os.getpid()))
        partial.rename(reached)
        deadline = time.monotonic() + HOLD_LIMIT
        while hold.exists() and time.monotonic() < deadline:
            time.sleep(0.002)

    return at_point


def install_from_settings() -> None:
    """Called once per process, at start."""
    global handler
    if settings.PAUSE_DIR:
        handler = file_handler(Path(settings.PAUSE_DIR))
