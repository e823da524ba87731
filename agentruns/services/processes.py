"""One supervised process: started, watched, started again when it dies, ended with its children.

Every process leads a session of its own, so that Ctrl-C in a terminal reaches only the
supervisor, which then ends things in order, and so that a whole process group can be killed.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from agentruns.services.errors import ServiceError

# Marks every process of a stack with its data folder, so that a later start can find what a
# killed supervisor has left behind (see `end_leftovers`).
MARK = "AGENTRUNS_STACK"

BACK_OFF = (0.1, 0.5, 1.0, 2.0, 4.0)
MAX_DEATHS = 6
DEATHS_WINDOW = 60.0  # seconds


@dataclass(frozen=True)
class Spec:
    """How to run one process."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stdin: str = ""
    account: tuple[int, int] | None = None  # uid, gid to run as
    niceness: int = 0  # lets those of a lower one go first
    repair: Callable[[], None] | None = None  # called before every start


def give_way(pid: int, niceness: int) -> None:
    """Have the session that this process leads let others go first.

    Linux may share the processor out among sessions before it looks at a process's own niceness
    (sched(7), autogroup): there the session has to be nice, too.
    """
    with contextlib.suppress(OSError):  # it is gone already, or the kernel knows no such groups
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


@dataclass
class Process:
    """A process that is kept alive until `stop`.

    `on_line(name, line)` gets its output; `on_start(name)` is told of every (re)start;
    `on_give_up(name)` of the end, if it died `MAX_DEATHS` times within `DEATHS_WINDOW` seconds.
    """

    spec: Spec
    on_line: Callable[[str, str], None] | None = None
    on_start: Callable[[str], None] | None = None
    on_give_up: Callable[[str], None] | None = None
    _popen: subprocess.Popen[str] | None = None
    _ending: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _deaths: deque[float] = field(default_factory=deque)
    _killed: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int | None:
        """The process number, or None while it is down."""
        popen = self._popen
        return popen.pid if popen is not None and popen.poll() is None else None

    @property
    def is_hopeless(self) -> bool:
        """Whether it died too often, and is not started again."""
        return len(self._deaths) >= MAX_DEATHS

    @property
    def deaths(self) -> int:
        """How often it died of itself, lately."""
        return len(self._deaths)

    def start(self) -> None:
        """Start it, and keep it started."""
        self._ending.clear()
        self._deaths.clear()
        self._spawn()
        self._watcher = threading.Thread(target=self._watch, name=self.spec.name, daemon=True)
        self._watcher.start()

    def begin_stop(self) -> None:
        """Ask it to end, and come back at once."""
        with self._lock:
            self._ending.set()
            self._signal(self.spec.stop_signal)

    def stop(self, grace: float = 5.0) -> None:
        """End it: by its own stop signal, and by force `grace` seconds later."""
        self.begin_stop()
        if self._popen is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(grace)
            self.kill()
        if self._watcher is not None:
            self._watcher.join()
            self._watcher = None

    def kill(self) -> None:
        """SIGKILL it and its children; unless it is being stopped, it comes back at once.

        A death that was wanted says nothing about its health: it does not count.
        """
        popen = self._popen
        if popen is not None and popen.poll() is None:
            self._killed = popen
            _kill_group(popen.pid)
            popen.wait()

    def restart(self) -> None:
        """End it in good order, and start it again."""
        self.stop()
        self.start()

    def last_words(self, lines: int = 12) -> str:
        """The end of its log."""
        try:
            text = self.spec.log.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _spawn(self) -> None:
        spec = self.spec
        if spec.repair is not None:
            spec.repair()
        spec.log.parent.mkdir(parents=True, exist_ok=True)
        uid, gid = spec.account or (None, None)
        self._popen = subprocess.Popen(
            list(spec.argv),
            env=dict(spec.env),
            cwd=spec.cwd,
            stdin=subprocess.PIPE if spec.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            user=uid,
            group=gid,
            extra_groups=None if gid is None else [],
        )
        if spec.niceness:
            give_way(self._popen.pid, spec.niceness)
        if spec.stdin and self._popen.stdin is not None:
            with self._popen.stdin as stdin:
                stdin.write(spec.stdin)
        threading.Thread(target=self._pump, args=(self._popen.stdout,), daemon=True).start()
        if self.on_start is not None:
            self.on_start(spec.name)

    def _pump(self, output: IO[str]) -> None:
        with output, self.spec.log.open("a") as log:
            for line in output:
                log.write(line)
                log.flush()
                if self.on_line is not None:
                    self.on_line(self.spec.name, line)

    def _watch(self) -> None:
        while self._popen is not None:
            self._popen.wait()
            # Children of a dead worker must not work on beside the heir.
            _kill_group(self._popen.pid)
            if self._ending.is_set():
                return
            was_wanted, self._killed = self._killed is self._popen, None
            if not was_wanted and not self._survives_death():
                return
            self._respawn()

    def _survives_death(self) -> bool:
        """Count a death, and pause before the next start; False if there will be none."""
        self._count_death()
        if self.is_hopeless:
            if self.on_give_up is not None:
                self.on_give_up(self.spec.name)
            return False
        return not self._ending.wait(BACK_OFF[min(len(self._deaths), len(BACK_OFF)) - 1])

    def _count_death(self) -> None:
        now = time.monotonic()
        self._deaths.append(now)
        while now - self._deaths[0] > DEATHS_WINDOW:
            self._deaths.popleft()

    def _respawn(self) -> None:
        # The lock closes the race with a stop that comes between the wait and the start.
        with self._lock:
            if self._ending.is_set():
                return
            try:
                self._spawn()
            except (OSError, ServiceError) as error:
                self._note(f"cannot be started again: {error}")

    def _note(self, text: str) -> None:
        if self.on_line is not None:
            self.on_line(self.spec.name, text + "\n")

    def _signal(self, number: signal.Signals) -> None:
        if self._popen is not None:
            self._popen.send_signal(number)


def end_leftovers(data_dir: Path) -> int:
    """End what an earlier, killed supervisor has left on this data folder; return how many.

    Call it only under the folder's lock. Servers are known by the folder they work in, because
    they overwrite their environment; everything else by its mark.
    """
    leftovers = [process for process in psutil.process_iter() if _belongs(process, data_dir)]
    for process in leftovers:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(leftovers, timeout=5)
    return len(leftovers)


def _belongs(process: psutil.Process, data_dir: Path) -> bool:
    try:
        if process.name() in ("postgres", "valkey-server"):
            return Path(process.cwd()).parent == data_dir
        return process.environ().get(MARK) == str(data_dir) and process.pid != os.getpid()
    except (psutil.Error, OSError):
        return False


def _kill_group(pid: int) -> None:
    # A group outlives its dead leader; its number stays taken for as long as it has members.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
