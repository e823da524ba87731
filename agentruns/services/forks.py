"""Processes that share nothing but their start: forked from a parent that has imported everything.

Celery's own pool of processes has its parent speak with its children through pipes. When children
are killed and the broker goes and comes back, that parent can wait on such a pipe for ever. These
tell their parent one thing at most: each is a worker of its own, so that one which hangs or dies
takes its own task with it and nothing else; and being forked, an heir is there at once.
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType

QUICK_DEATH = 5.0  # seconds: who ends sooner than this would end again
PAUSE = 1.0  # seconds before its heir starts
ENDINGS = (signal.SIGTERM, signal.SIGINT)
HEARD = (*ENDINGS, signal.SIGCHLD)
PID = 8  # bytes of one, in what a child writes


@dataclass
class _Child:
    number: int
    since: float = field(default_factory=time.monotonic)
    is_held_up: bool = False


class Forks:
    """`count` processes that do `work(number)`; each that ends has an heir with its number.

    One that says `held_up()` has an heir too, and goes on by itself: what it waits for may still
    come, and is worth knowing. There are as many of these as of the others, at most; of more, the
    one that has been held up for the longest is killed.

    SIGTERM and SIGINT to the parent are SIGTERM for all of them, and the end of it. When the
    parent dies otherwise, each gets SIGTERM as well. `say` is told of every unexpected end.
    """

    def __init__(self, count: int, work: Callable[[int], None], say: Callable[[str], None]) -> None:
        self._numbers = range(1, count + 1)
        self._work = work
        self._say = say
        self._children: dict[int, _Child] = {}  # by pid, in the order of their birth
        self._is_ending = False
        # Nothing is ever written: what the children read is the end, when the parent has died.
        self._lifeline, self._held = os.pipe()
        # The parent's: the numbers of its signals, and the pids of children that are held up.
        self._woken, self._wake = os.pipe()
        self._told, self._tell = os.pipe()
        os.set_blocking(self._wake, False)

    def keep(self) -> None:
        """Keep them there. Returns when all have ended because they should."""
        signal.set_wakeup_fd(self._wake)
        for each in HEARD:
            signal.signal(each, _heard)
        for number in self._numbers:
            self._fork(number)
        while self._children:
            ready = select.select([self._woken, self._told], [], [])[0]
            if self._woken in ready and set(os.read(self._woken, 4096)) & set(ENDINGS):
                self._end()
            if self._told in ready:
                self._stand_in_for(int.from_bytes(os.read(self._told, PID)))
            self._bury()

    def held_up(self) -> None:
        """Said in a child, by any of its threads: it will not take another task for long."""
        os.write(self._tell, os.getpid().to_bytes(PID))

    def _bury(self) -> None:
        """Take note of those that have ended."""
        with suppress(ChildProcessError):  # there is none any more
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                child = self._children.pop(pid)
                if self._is_ending or child.is_held_up:
                    continue
                self._say(f"process {child.number} ended: {_how(status)}")
                if time.monotonic() - child.since < QUICK_DEATH and not os.WIFSIGNALED(status):
                    time.sleep(PAUSE)
                self._fork(child.number)

    def _stand_in_for(self, pid: int) -> None:
        child = self._children.get(pid)
        if child is None or child.is_held_up or self._is_ending:
            return
        child.is_held_up = True
        self._say(f"process {child.number} is held up: another one stands in for it")
        held_up = [each for each, known in self._children.items() if known.is_held_up]
        for oldest in held_up[: -len(self._numbers)]:
            _kill(oldest, signal.SIGKILL)
        self._fork(child.number)

    def _end(self) -> None:
        self._is_ending = True
        for pid in self._children:
            _kill(pid, signal.SIGTERM)

    def _fork(self, number: int) -> None:
        # What comes meanwhile is for the parent: the newborn has its handlers and its pipe.
        signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
        try:
            pid = os.fork()
            if pid == 0:
                self._live(number)
            self._children[pid] = _Child(number)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)

    def _live(self, number: int) -> None:
        code = 1
        try:
            os.close(self._held)
            signal.set_wakeup_fd(-1)
            for each in HEARD:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
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


def _heard(_signal: int, _frame: FrameType | None) -> None:
    """The wake-up pipe has its number."""


def _kill(pid: int, how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, how)


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"
