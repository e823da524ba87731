"""A task that has been given up, while its executor is still at it.

A tool may come back late, or never. Its call is in doubt by then, or was dropped, and nobody waits
for the executor; but it has a place, and others wait for that. So a thread beside the task looks
whether it still counts, and says so once if not: another executor is started then. This one goes on
until the tool comes back, for what it has to say is the truth (protocol §4), or until its alarm
ends it (agentruns/alarm.py); and it takes no other task.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from django.db import connection

from agentruns.models import ToolCall
from agentruns.states import READY

LOOK_EVERY = 0.5  # seconds; a task that is shorter is never looked at
LONG = 60.0  # seconds that another task than a call, such as a look-up, may take
ACT = "agentruns.tasks.act"

log = structlog.get_logger(__name__)


@dataclass
class Task:
    """One task, and what is known of it: `token` is the claim under which its call was first seen,
    `is_suspect` that it no longer counted when it was last looked at.
    """

    name: str
    id: str
    began: float = field(default_factory=time.monotonic)
    token: str = ""
    is_suspect: bool = False

    def still_counts(self) -> bool:
        """Whether anybody waits for it. Asks the database."""
        if self.name != ACT:
            return time.monotonic() - self.began < LONG
        call = ToolCall.objects.filter(pk=self.id, state__in=(*READY, "in_flight"))
        token = call.values_list("claim_token", flat=True).first()
        self.token = self.token or token or ""
        return token is not None and token in ("", self.token)


class Lookout:
    """Looks at one task of this process at a time, and says once if it is `held_up`."""

    def __init__(self, held_up: Callable[[], None]) -> None:
        self._held_up = held_up
        self._lock = threading.Lock()
        self._task: Task | None = None
        self._has_said_so = False
        threading.Thread(target=self._look, name="lookout", daemon=True).start()

    def begin(self, task: Task) -> None:
        with self._lock:
            self._task = task

    def end(self) -> None:
        """The task is over. If somebody stands in for this process, it is over as well."""
        with self._lock:
            self._task = None
            if self._has_said_so:
                os.kill(os.getpid(), signal.SIGTERM)

    def _look(self) -> None:
        while not self._has_said_so:
            time.sleep(LOOK_EVERY)
            task = self._task
            if task is None or time.monotonic() - task.began < LOOK_EVERY:
                continue
            try:
                counts = task.still_counts()
            except Exception:
                log.exception("lookout.blind")  # the database is away: nobody is given up meanwhile
                continue
            finally:
                connection.close()
            with self._lock:
                # Twice, since a task that has just recorded its outcome is about to end.
                if not counts and task.is_suspect and self._task is task:
                    self._has_said_so = True
                    log.warning("executor.held_up", task=task.name, id=task.id)
                    self._held_up()
                task.is_suspect = not counts
