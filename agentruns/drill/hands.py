"""The hands of people: they ask for Stop, pause, resume, approval, undo and the stop of an undo,
while a drill looks on.

By themselves they are threads of the drill. A drill that kills whoever stands at a person's point
has them in a process of their own (`python -m agentruns.drill`): one line of JSON for each thing
to do on its stdin, one for each answer on its stdout.

Like people they ask again if the database is away, or if they were killed before the answer came;
so every verb must bear being asked for twice.
"""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TextIO

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agentruns import pausepoints
from agentruns.drill.patience import AWAY, patiently
from agentruns.errors import AgentrunsError
from agentruns.models import Run, ToolCall
from agentruns.protocol.pause import pause_run, unpause_run
from agentruns.protocol.resume import resume_run
from agentruns.protocol.stop import request_stop
from agentruns.services.processes import MARK
from agentruns.services.programs import BASE_DIR
from compensation.saga import preview, request_undo, stop_undo
from review.services import decide

AT_ONCE = 64

Data = dict[str, Any]


class Hands(Protocol):
    """Whoever does it: `ask` comes back at once, and the future holds what `_do` returned."""

    def ask(self, verb: str, run_id: str, by: str, **details: Any) -> "Future[Data]": ...

    def close(self) -> None: ...


class Threads:
    """Hands in this process."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="hand")

    def ask(self, verb: str, run_id: str, by: str, **details: Any) -> "Future[Data]":
        return self._pool.submit(_do, verb, run_id, by, details)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Apart:
    """Hands in a process that may be killed: another one takes over, and asks again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, tuple[str, Future[Data]]] = {}
        self._numbers = itertools.count(1)
        self._is_closing = False
        self._process = self._start()

    def ask(self, verb: str, run_id: str, by: str, **details: Any) -> "Future[Data]":
        number = next(self._numbers)
        line = json.dumps([number, verb, run_id, by, details])
        answer: Future[Data] = Future()
        with self._lock:
            self._open[number] = line, answer
            self._tell(line)
        return answer

    def kill(self) -> None:
        """SIGKILL whoever is asking; others will ask in their place."""
        self._process.kill()

    def close(self) -> None:
        with self._lock:
            self._is_closing = True
            self._process.kill()
        self._process.wait()

    def _start(self) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "agentruns.drill"],
            # So that it can be killed as one of the stack's own: see steering.kill_worker.
            env=os.environ | {MARK: str(settings.DATA_DIR)},
            cwd=BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return process

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                number, done = json.loads(line)
                with self._lock:
                    answer = self._open.pop(number)[1]
                answer.set_result(done)
        process.wait()
        with self._lock:
            if not self._is_closing:
                self._process = self._start()
                for line, _answer in self._open.values():
                    self._tell(line)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it was killed; the next one is told
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()


def serve(asked: TextIO, answers: TextIO) -> None:
    """Do what each line asks for, until there is no more."""
    lock = threading.Lock()

    def one(line: str) -> None:
        number, verb, run_id, by, details = json.loads(line)
        done = json.dumps([number, _do(verb, run_id, by, details)])
        with lock:
            answers.write(f"{done}\n")
            answers.flush()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in asked:
            pool.submit(one, line)


def _do(verb: str, run_id: str, by: str, details: Data) -> Data:
    """What came of it; with `refused`, a sentence, where that is no longer possible."""
    pausepoints.begin_task("", ())
    try:
        return patiently(lambda: VERBS[verb](run_id, User.objects.get(username=by), **details))
    except AgentrunsError as error:
        return {"refused": str(error)}
    except AWAY as error:
        return {"refused": repr(error)}


def _stop(run_id: str, by: User, *, pending: str) -> Data:
    began = time.perf_counter()
    stop = request_stop(run_id, by=by, reason="drill", pending=pending)
    return {"answer": stop.answer, "took_ms": (time.perf_counter() - began) * 1000}


def _decide(run_id: str, by: User, *, call: str, verdict: str) -> Data:
    asked = ToolCall.objects.get(pk=call)
    decide(call, by=by, verdict=verdict, digest=asked.args_digest)
    return {}


def _undo(run_id: str, by: User) -> Data:
    """Ask for the undo of whatever can be undone."""
    run = Run.objects.get(pk=run_id)
    possible = [item.call.pk for item in preview(run) if item.can_undo]
    if possible:
        request_undo(run_id, by=by, call_ids=possible)
    return {"calls": possible}


def _resume(run_id: str, by: User, *, epoch: int) -> Data:
    """Take up the run that was stopped in `epoch`. Asked again after another stop, it is not
    meant any more.
    """
    if Run.objects.get(pk=run_id).epoch != epoch:
        return {"refused": _("The run has moved on since.")}
    return {"status": resume_run(run_id, by=by).status}


def _quietly(verb: Callable[..., Run]) -> Callable[..., Data]:
    def do(run_id: str, by: User) -> Data:
        return {"status": verb(run_id, by=by).status}

    return do


VERBS: dict[str, Callable[..., Data]] = {
    "stop": _stop,
    "pause": _quietly(pause_run),
    "unpause": _quietly(unpause_run),
    "resume": _resume,
    "decide": _decide,
    "undo": _undo,
    "stop_undo": _quietly(stop_undo),
}
