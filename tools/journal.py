"""A record of what was done: JSON lines on disk, safe before anybody is answered."""

import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Journal:
    """Append-only. Threads of one process and other processes may write to the same file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def append(self, event: str, **data: Any) -> dict[str, Any]:
        """Write one line and wait until it is on the disk; returns it, with its time `at`."""
        entry = {"at": datetime.now(UTC).isoformat(), "event": event, **data}
        line = json.dumps(entry, ensure_ascii=False) + "\n"
        with self._lock:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # One write: lines of two processes never mix.
                os.write(file, line.encode())
                os.fsync(file)
            finally:
                os.close(file)
        return entry

    def entries(self) -> Iterator[dict[str, Any]]:
        """All lines in order of writing; none if there is no file yet."""
        if not self.path.exists():
            return
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                # A server that died while writing leaves a torn line, which it never answered for.
                if line.rstrip("\n").endswith("}"):
                    yield json.loads(line)
