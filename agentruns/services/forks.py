"""Processes that share nothing but their start: forked from a parent that has imported everything.

Celery's own pool of processes has its parent speak with its children through pipes. When children
are killed and the broker goes and comes back, that parent can wait on such a pipe for ever. These
speak with nobody: each is a worker of its own, so that one which hangs or dies takes its own task
with it and nothing else; and being forked, an heir is there at once.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

QUICK_DEATH = 5.0  # seconds: who ends sooner than this would end again
PAUSE = 1.0  # seconds before its heir starts
ENDINGS = (signal.SIGTERM, signal.SIGINT)


class Forks:
    """`count` processes that do `work(number)`; each that ends has an heir with its number.

    SIGTERM and SIGINT to the parent are SIGTERM for all of them, and the end of it. When the
    parent dies otherwise, each gets SIGTERM as well. `say` is told of every unexpected end.
    """

    def __init__(self, count: int, work: Callable[[int], None], say: Callable[[str], None]) -> None:
        self._numbers = range(1, count + 1)
        self._work = work
        self._say = say
        self._children: dict[int, tuple[int, float]] = {}  # pid: its number, when it started
        self._is_ending = False
        # Nothing is ever written: what the children read is the end, when the parent has died.
        self._lifeline, self._held = os.pipe()

    def keep(self) -> None:
        """Keep them there. Returns when all have ended because they should."""
        for ending in ENDINGS:
            signal.signal(ending, self._end)
        for number in self._numbers:
            self._fork(number)
        while self._children:
            pid, status = os.wait()
            number, since = self._children.pop(pid)
            if self._is_ending:
                continue
            self._say(f"process {number} ended: {_how(status)}")
            if time.monotonic() - since < QUICK_DEATH and not os.WIFSIGNALED(status):
                time.sleep(PAUSE)
            self._fork(number)

    def _end(self, _signal: int, _frame: FrameType | None) -> None:
        self._is_ending = True
        for pid in self._children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _fork(self, number: int) -> None:
        # An ending in here would miss the newborn, or find it with its parent's handler.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
        try:
            if self._is_ending:
                return
            pid = os.fork()
            if pid == 0:
                self._live(number)
            self._children[pid] = (number, time.monotonic())
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)

    def _live(self, number: int) -> None:
        code = 1
        try:
            os.close(self._held)
            for ending in ENDINGS:
                signal.signal(ending, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
            threading.Thread(target=self._end_with_parent, daemon=True).start()
            self._work(number)
            code = 0
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 1
        except Exception:  # noqa: BLE001  (nothing above could say what it was)
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # what the parent has registered for its exit is not the child's

    def _end_with_parent(self) -> None:
        os.read(self._lifeline, 1)
        os.kill(os.getpid(), signal.SIGTERM)


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"
