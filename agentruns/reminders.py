"""Reminders: how often a sweeper rings again for something that does not move.

A message may lie in a queue that is behind, and ringing every second would only put it further
behind. So the pauses between two rings for the same thing grow, as long as nothing happens to it.
The memory is the process's own: another sweeper rings by itself, which does no harm.
"""

import threading
import time
from collections.abc import Callable, Hashable

FIRST_PAUSE = 2.0  # seconds; each pause is twice the one before
LONGEST_PAUSE = 30.0
FORGOTTEN_AFTER = 300.0


class Reminders:
    """What was rung for lately. Safe between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._rung: dict[Hashable, tuple[float, float]] = {}  # when, and the pause from then on

    def is_due(self, thing: Hashable) -> bool:
        """Whether to ring for `thing` now; if so, it counts as rung. A thing to which something
        has happened since is another thing: its key says so.
        """
        now = self.clock()
        with self._lock:
            self._forget(now)
            rung_at, pause = self._rung.get(thing, (0.0, 0.0))
            if pause and now - rung_at < pause:
                return False
            self._rung[thing] = now, min(LONGEST_PAUSE, pause * 2 or FIRST_PAUSE)
            return True

    def clear(self) -> None:
        """Know of nothing any more."""
        with self._lock:
            self._rung.clear()

    def _forget(self, now: float) -> None:
        if len(self._rung) > 1000:
            self._rung = {
                key: rung for key, rung in self._rung.items() if now - rung[0] < FORGOTTEN_AFTER
            }


reminders = Reminders()
