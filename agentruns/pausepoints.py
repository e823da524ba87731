"""Named pause points: the moments between two steps, at which a test or a drill can look in.

Every boundary has one: after each transaction, before and after each outside call; never inside
a transaction. In production there is no handler, and a point costs one comparison. Tests install
a handler in their own process. Drills work across processes, by files in PAUSE_DIR/<run>/:

- `<point>.hold`: the first who reaches the point writes `<point>.reached` (who it is, and which
  message it works on) and waits until the hold is gone. Whoever comes second passes.
- `<point>.lose`: the first who reaches the point rings no doorbell from there to its next point.
  From then on there is `<point>.lost`, with a line for each that would have rung.

Every wait has a deadline.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

HOLD_LIMIT = 60.0  # seconds; a forgotten hold must not keep a worker for ever
FORGIVEN = 10.0  # seconds; who is held for longer has been stalled, as by anything else

Handler = Callable[[str, str], None]
handler: Handler | None = None
_held = threading.local()


@dataclass
class Errand:
    """One piece of work, such as a task, shared by all threads that work on it."""

    task: str = ""
    args: tuple[Any, ...] = ()
    lost_bells: Path | None = None  # while it rings none: where they are counted


_errand: ContextVar[Errand | None] = ContextVar("errand", default=None)


def reach(run_id: str, point: str) -> None:
    """Say that `run_id` is at `point`, and wait there if somebody asked for it."""
    if handler is not None:
        since = time.monotonic()
        handler(run_id, point)
        _held.seconds = _seconds_held() + min(time.monotonic() - since, FORGIVEN)


def clock() -> float:
    """This thread's monotonic seconds, less those for which somebody held it at a point, up to
    `FORGIVEN` each time.
    """
    return time.monotonic() - _seconds_held()


def _seconds_held() -> float:
    return float(getattr(_held, "seconds", 0.0))


def is_on() -> bool:
    return handler is not None


def begin_task(name: str, args: tuple[Any, ...]) -> None:
    """Called before each task: what is reached from now on is reached by it."""
    _errand.set(Errand(name, args))


def loses_bell(name: str) -> bool:
    """Whether a drill wants this doorbell lost; it is counted then."""
    errand = _errand.get()
    if errand is None or errand.lost_bells is None:
        return False
    with contextlib.suppress(OSError), errand.lost_bells.open("a") as count:
        count.write(f"{name}\n")
    return True


def file_of(folder: Path, run_id: str, point: str, what: str) -> Path:
    """The file of a point; `what` is hold, reached, lose or lost."""
    return folder / run_id / f"{point.replace(':', '_')}.{what}"


def file_handler(folder: Path) -> Handler:
    """The handler that a drill steers by files in `folder`."""

    def at_point(run_id: str, point: str) -> None:
        errand = _this_errand()
        errand.lost_bells = None
        if not (folder / run_id).exists():
            return
        lost = file_of(folder, run_id, point, "lost")
        if file_of(folder, run_id, point, "lose").exists() and _is_first(lost):
            errand.lost_bells = lost
        hold = file_of(folder, run_id, point, "hold")
        if hold.exists() and _is_first(file_of(folder, run_id, point, "taken")):
            _sign(file_of(folder, run_id, point, "reached"), errand)
            deadline = time.monotonic() + HOLD_LIMIT
            while hold.exists() and time.monotonic() < deadline:
                time.sleep(0.002)

    return at_point


def _this_errand() -> Errand:
    errand = _errand.get()
    if errand is None:
        errand = Errand()
        _errand.set(errand)
    return errand


def _is_first(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except OSError:  # somebody was there before, or the drill has just cleared its files away
        return False
    return True


def _sign(reached: Path, errand: Errand) -> None:
    who = {"pid": os.getpid(), "task": errand.task, "args": errand.args}
    partial = reached.with_suffix(f".{os.getpid()}.partial")
    with contextlib.suppress(OSError):  # the drill has just cleared its files away
        partial.write_text(json.dumps(who))
        partial.rename(reached)


def install_from_settings() -> None:
    """Called once per process, at start."""
    global handler
    if settings.PAUSE_DIR:
        handler = file_handler(Path(settings.PAUSE_DIR))
