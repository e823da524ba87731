"""The people of a soak: whoever starts runs, stops, pauses, resumes, decides, answers and undoes.

They do it as pages and API do, by the same verbs; and like people they try again where the
database is away, so each verb must bear being called twice.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agentruns import demo
from agentruns.drill.patience import patiently
from agentruns.errors import AgentrunsError
from agentruns.models import Agent, Run, StopRequest, ToolCall
from agentruns.models.agent import DEMO
from agentruns.protocol.budget import raise_budget
from agentruns.protocol.pause import pause_run, unpause_run
from agentruns.protocol.resume import resume_run
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from agentruns.soak.plan import AGENTS, Decision, Press, RunPlan
from compensation.queries import foresee, latest_steps
from compensation.saga import request_undo
from review.services import answer_doubt, decide
from tools.world import random_script

NOTHING = object()  # of a verb that found nothing to do


@dataclass
class Tally:
    """What people did, counted from several threads. `answers`: ms that each Stop took."""

    counts: dict[str, int] = field(default_factory=dict)
    answers: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, what: str, count: int = 1) -> None:
        with self._lock:
            self.counts[what] = self.counts.get(what, 0) + count

    def answered(self, milliseconds: float) -> None:
        with self._lock:
            self.answers.append(milliseconds)

    def accuse(self, what: str) -> None:
        """Keep something that must never be."""
        with self._lock:
            self.wrong.append(what)


class People:
    """Ana starts and stops, Omar decides, Ada stops what is not hers; a pool of hands."""

    def __init__(self, world_dir: Path, hands: int = 10) -> None:
        self.tally = Tally()
        self._world_dir = world_dir
        self._pool = ThreadPoolExecutor(hands, thread_name_prefix="person")
        self._busy: set[Future[None]] = set()
        self.owner = patiently(lambda: demo.person("ana", "Ana", "Berg"))
        self._reviewer = patiently(lambda: demo.person("omar", "Omar", "Haddad", reviews=True))
        self._admin = patiently(lambda: demo.person("ada", "Ada", "Lind", administers=True))
        self._agents = {slug: patiently(partial(_agent, slug)) for slug in AGENTS}

    def finish(self) -> None:
        """Wait until nobody is at anything any more."""
        wait(list(self._busy))

    def do(self, verb: Callable[..., object], *args: Any) -> Future[None]:
        """Have somebody do it, soon. What is no longer possible is counted, and no trouble."""
        task = self._pool.submit(self._try, verb, *args)
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)
        return task

    def _try(self, verb: Callable[..., object], *args: Any) -> None:
        name = verb.__name__
        try:
            if patiently(lambda: verb(*args)) is not NOTHING:
                self.tally.add(name)
        except AgentrunsError as error:
            self.tally.add(f"{name}: {error.code}")
        except Exception as error:  # noqa: BLE001  (whatever it is belongs into the report)
            self.tally.accuse(f"{name}{args[:1]}: {error!r}")

    def start(self, plan: RunPlan, parent_id: str | None) -> None:
        """Start it, as a child if the one that shall be its parent is there."""
        if not Run.objects.filter(pk=parent_id).exists():
            parent_id = None
        if not Run.objects.filter(pk=plan.run_id).exists():
            start_run(
                owner=self.owner,
                agent=self._agents[plan.agent],
                goal=f"Soak, run {plan.number}",
                run_id=plan.run_id,
                parent_id=parent_id,
                ring=plan.rings,
            )

    def stop(self, run_id: str, press: Press) -> None:
        """So many presses at the same moment. All get the same answer."""
        barrier = threading.Barrier(press.times)
        with ThreadPoolExecutor(press.times) as crowd:
            presses = [
                crowd.submit(self._press, run_id, press, barrier) for _ in range(press.times)
            ]
        stops = [each.result() for each in presses]
        if any((each.pk, each.answer) != (stops[0].pk, stops[0].answer) for each in stops):
            self.tally.accuse(f"{run_id}: {len(stops)} presses got different answers")

    def _press(self, run_id: str, press: Press, barrier: threading.Barrier) -> StopRequest:
        by = self._admin if press.signal == "admin" else self.owner
        barrier.wait()

        def verb() -> StopRequest:
            began = time.perf_counter()
            stop = request_stop(
                run_id, by=by, signal=press.signal, reason="soak", pending=press.pending
            )
            self.tally.answered((time.perf_counter() - began) * 1000)
            return stop

        self.tally.add("presses")
        return patiently(verb)

    def pause(self, run_id: str) -> None:
        pause_run(run_id, by=self.owner)

    def unpause(self, run_id: str) -> None:
        unpause_run(run_id, by=self.owner)

    def resume(self, run_id: str, frozen: str) -> None:
        resume_run(run_id, by=self.owner, frozen=frozen)

    def raise_limits(self, run_id: str) -> None:
        raise_budget(run_id, by=self.owner, call_limit=None, token_limit=None)

    def decide(self, call_id: str, decision: Decision) -> None:
        call = ToolCall.objects.get(pk=call_id)
        decide(call_id, by=self._reviewer, verdict=decision.verdict, digest=call.args_digest)

    def answer(self, call_id: str) -> None:
        """Look for the call where it would have landed, and say what was found."""
        call = ToolCall.objects.get(pk=call_id)
        is_there = is_in_the_world(self._world_dir, call.request_id)
        word = "happened" if is_there else "did_not_happen"
        answer_doubt(call_id, by=self._reviewer, answer=word, evidence="looked for it by its key")

    def cannot_tell(self, call_id: str) -> None:
        answer_doubt(call_id, by=self._reviewer, answer="cannot_tell", evidence="")

    def undo(self, run_id: str, share: float) -> object:
        """Ask for the undo of a share of what can be undone: the first so many by number."""
        run = Run.objects.get(pk=run_id)
        steps = latest_steps(run)
        calls = ToolCall.objects.filter(run=run).order_by("number")
        possible = [call.pk for call in calls if foresee(call, steps.get(call.pk)).can_undo]
        chosen = possible[: round(len(possible) * share)]
        return request_undo(run_id, by=self.owner, call_ids=chosen) if chosen else NOTHING


def is_in_the_world(world_dir: Path, request_id: str) -> bool:
    """Whether any server of the world has it on record, whatever it is."""
    records = [path for path in world_dir.glob("*.jsonl") if not path.name.startswith("model")]
    return any(request_id in path.read_text(encoding="utf-8") for path in records)


def _agent(slug: str) -> Agent:
    limits = {"soak-waits": {"call_limit": 2}}.get(
        slug, {"token_limit": 260} if AGENTS[slug] else {}
    )
    agent, _is_new = Agent.objects.get_or_create(
        slug=slug,
        defaults={
            "name": "Restless assistant",
            "model": f"{DEMO}{random_script.NAME}",
            "tools": list(random_script.CALLS),
            "is_listed": False,
            **({"on_limit": AGENTS[slug]} if AGENTS[slug] else {}),
            **limits,
        },
    )
    return agent
