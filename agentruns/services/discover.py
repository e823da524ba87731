"""Find out what is up on a data folder: pure Python, because the settings themselves ask.

A running stack holds a lock on `up.lock` for as long as it lives and describes itself in
`up.json`. The lock decides, not the file and not a process number: the kernel drops it with its
holder, however that one ends, so a description left behind by a crash is never believed.
"""

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

LOCK_NAME = "up.lock"
DESCRIPTION_NAME = "up.json"


class StackLock:
    """The right to run a stack on a data folder; at most one process has it."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / LOCK_NAME
        self._fd: int | None = None

    def acquire(self, patience: float = 0.5) -> bool:
        """Take the lock; False if another living process keeps it for longer than `patience` s.

        The patience is for those who only look (`is_up`): they hold it for a moment.
        """
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + patience
        while not _try_lock(fd, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                os.close(fd)
                return False
            time.sleep(0.02)
        self._fd = fd
        return True

    def release(self) -> None:
        """Give the lock back; harmless if it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def is_up(data_dir: Path) -> bool:
    """Whether a living process runs a stack on this data folder."""
    try:
        fd = os.open(data_dir / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _try_lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def running_services(data_dir: Path) -> dict[str, Any]:
    """What is ready on this data folder (see `describe`), or {} if nothing is."""
    try:
        description = json.loads((data_dir / DESCRIPTION_NAME).read_text())
    except (OSError, ValueError):
        return {}
    return description if isinstance(description, dict) and is_up(data_dir) else {}


def describe(data_dir: Path, description: dict[str, Any]) -> None:
    """Say to other commands what is ready: database_url, redis_url, ports, pid, ready_at, pids.

    Written whole or not at all, and for its owner's eyes: it names a password.
    """
    path = data_dir / DESCRIPTION_NAME
    draft = path.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(description, indent=1))
    draft.replace(path)


def undescribe(data_dir: Path) -> None:
    """Take the description away; harmless if there is none."""
    (data_dir / DESCRIPTION_NAME).unlink(missing_ok=True)


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
