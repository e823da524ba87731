"""Keeps one program of a tool: `keeper.py LIFELINE PROGRAM ARGUMENT…` (see tools/children.py).

It ends with the program's own exit code, or when the pipe LIFELINE (a file descriptor) is closed
at its other end: at once, however that came about. On SIGTERM the program is told, and has GRACE
seconds. Whichever it was, whatever the program has started ends as well: its process group; and
on Linux also what has left the group, since orphans become children of this process.

It imports nothing of ours and has one thread: the kernel's promise to end a child with its parent
(PR_SET_PDEATHSIG), which is for the case that this very process is killed, holds for the thread
that forked it.
"""

import ctypes
import fcntl
import os
import select
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

GRACE = 1.0  # seconds for a program that was asked to end
PATIENCE = 5.0  # seconds for what was killed to be gone
NOT_STARTED = 127
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_IS_LINUX = sys.platform == "linux"


def keep(lifeline: int, argv: list[str]) -> int:
    """Run the program; returns its exit code, 128 and more if a signal ended it."""
    lifeline = _moved_away(lifeline)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for each in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(each, _heard)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    program = _start(argv)
    _let_go_of_streams()
    ends_at = float("inf")
    while not _has_ended(program):
        left = None if ends_at == float("inf") else max(0.0, ends_at - time.monotonic())
        ready = select.select([lifeline, woken], [], [], left)[0]
        if lifeline in ready or not ready:
            break
        if signal.SIGTERM in os.read(woken, 64) and left is None:
            _kill_group(program, signal.SIGTERM)
            ends_at = time.monotonic() + GRACE
    return _end_all(program)


def _heard(_signal: int, _frame: FrameType | None) -> None:
    """The wake-up pipe says which it was."""


def _moved_away(lifeline: int) -> int:
    """Off the standard streams, where the program would have it, and not to be inherited."""
    moved = fcntl.fcntl(lifeline, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(lifeline)
    if lifeline == 2:
        os.open(os.devnull, os.O_WRONLY)  # the lowest number that is free, which is 2
    return moved


def _start(argv: list[str]) -> int:
    keeper = os.getpid()
    program = os.fork()
    if program == 0:
        try:
            os.setpgid(0, 0)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == keeper:  # else it died before it was promised
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                os.execvp(argv[0], argv)  # noqa: S606  (what it is told to)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error}\n".encode())
        finally:
            os._exit(NOT_STARTED)
    with suppress(OSError):  # it has done so itself, and may be another program by now
        os.setpgid(program, program)
    return program


def _let_go_of_streams() -> None:
    """They are the program's: who reads them is to see their end when it closes them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _has_ended(program: int) -> bool:
    """Reaps orphans, and leaves the program's own end to be read: while it is there, nothing else
    can have the number of its group.
    """
    while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
        if found.si_pid == program:
            return True
        os.waitpid(found.si_pid, 0)
    return False


def _end_all(program: int) -> int:
    """Until nothing is left; what is left starts others meanwhile, so it is looked again."""
    _kill_group(program, signal.SIGKILL)
    code, deadline = NOT_STARTED, time.monotonic() + PATIENCE
    with suppress(ChildProcessError):
        while time.monotonic() < deadline:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == program:
                code = os.waitstatus_to_exitcode(status)
            elif pid == 0:
                for each in _descendants():
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(each, signal.SIGKILL)
                time.sleep(0.002)
    return code if code >= 0 else 128 - code


def _kill_group(program: int, how: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program, how)


def _descendants() -> list[int]:
    """Every process that comes of this one, as Linux lists them; elsewhere none."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if _IS_LINUX else []:
        with suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat") as stat:
            # The name of the program comes first, in brackets, and may have any sign in it.
            parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for each in found:
        found += [pid for pid, parent in parents.items() if parent == each]
    return found[1:]


def _prctl(option: int, value: int) -> None:
    if _IS_LINUX:
        _LIBC.prctl(option, value, 0, 0, 0)


_LIBC = ctypes.CDLL(None)

if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), sys.argv[2:]))
