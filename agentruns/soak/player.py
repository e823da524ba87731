"""The player: starts the planned runs, watches them, and has people do what was planned.

One thread looks at all runs a few times a second and hands out what is due to the people.
"""

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from django.db import connection

from agentruns.drill.patience import AWAY
from agentruns.models import Run, ToolCall
from agentruns.soak import plan
from agentruns.soak.nuisances import Nuisances
from agentruns.soak.people import People
from agentruns.soak.plan import Pause, Press, RunPlan
from agentruns.soak.traps import Traps
from agentruns.states import ACTIVE_RUN

TICK = 0.04  # seconds between two looks at the traps
LOOK_EVERY = 0.15  # seconds between two looks at the database
DOUBTS_EVERY = 1.0
SURE_AFTER = 5.0  # seconds in doubt after which nobody is still sending it
DIRTY_PATIENCE = 25.0  # seconds that a resume waits for a doubt to be resolved
CANNOT_TELL = 0.15  # how often a person's first answer is that they can't tell

Tell = Callable[[dict[str, Any]], None]
Due = tuple[float, int, Callable[[], object]]  # when, in which order of asking, what


@dataclass
class Story:
    """One run on its way through its plan. Times are of the monotonic clock."""

    plan: RunPlan
    since: float = 0.0  # the start, or the latest resume
    is_begun: bool = False
    life: int = 0  # how often it was resumed
    is_pressed: bool = False
    is_raised: bool = False
    ended_at: float | None = None
    is_over: bool = False
    asked: set[str] = field(default_factory=set)

    @property
    def press(self) -> Press | None:
        """The stop that is still to come in this life."""
        presses = self.plan.presses
        is_due = self.is_begun and not self.is_pressed and self.life < len(presses)
        return presses[self.life] if is_due else None


@dataclass(frozen=True)
class Tempo:
    """How hard to play."""

    seed: int
    per_second: float
    at_once: int


class Player:
    """`play` goes on until `is_over` says so. `tell` is how the host hears of things."""

    def __init__(self, tempo: Tempo, people: People, traps: Traps, world_dir: Path, tell: Tell):
        self._tempo = tempo
        self._people = people
        self._traps = traps
        self._tell = tell
        self._stories: dict[str, Story] = {}
        self._runs = plan.runs(tempo.seed, tempo.per_second)
        self._next = next(self._runs)
        self._nuisances = Nuisances(tempo.seed, people, world_dir)
        self._agenda: list[Due] = []
        self._order = count()
        self._answering: set[str] = set()
        self._begun = 0

    def play(self, is_over: Callable[[], bool]) -> None:
        """Start, look, act."""
        began = time.monotonic()
        look_at = doubts_at = 0.0
        while not is_over():
            now = time.monotonic()
            self._do_what_is_due(now)
            self._spring_traps()
            if now >= look_at:
                self._start_what_is_due(now - began)
                self._apart(self._look)
                look_at = now + LOOK_EVERY
            if now >= doubts_at:
                self._apart(self._look_for_doubts)
                self._apart(self._nuisances.do_what_is_due, now - began, list(self._stories))
                doubts_at = now + DOUBTS_EVERY
            time.sleep(TICK)

    def end(self) -> None:
        """Nobody is held any more, and the world does as it should."""
        for run_id in self._stories:
            self._clear(run_id)
        self._nuisances.end()

    def progress(self) -> str:
        """How it goes, in a line."""
        presses = self._people.tally.counts.get("presses", 0)
        queues = " ".join(f"{name} {n}" for name, n in self._nuisances.waiting().items())
        return f"runs {self._begun}  open {len(self._stories)}  presses {presses}  queues {queues}"

    def _apart(self, look: Callable[..., None], *args: Any) -> None:
        """A database that is away just now is looked at next time."""
        try:
            look(*args)
        except AWAY:
            return
        finally:
            connection.close()

    def _later(self, seconds: float, act: Callable[..., object], *args: Any) -> None:
        item: Due = (time.monotonic() + seconds, next(self._order), partial(act, *args))
        heapq.heappush(self._agenda, item)

    def _do_what_is_due(self, now: float) -> None:
        while self._agenda and self._agenda[0][0] <= now:
            heapq.heappop(self._agenda)[2]()

    # --- Starting ----------------------------------------------------------
    def _start_what_is_due(self, elapsed: float) -> None:
        while self._next.starts_at <= elapsed and len(self._stories) < self._tempo.at_once:
            self._start(self._next)
            self._next = next(self._runs)

    def _start(self, run: RunPlan) -> None:
        self._begun += 1
        story = self._stories[run.run_id] = Story(run)
        self._arm(run, 0)
        if run.silent_at:
            self._traps.silence(run.run_id, run.silent_at)
        parent = plan.run_id(self._tempo.seed, run.parent) if run.parent else None
        self._people.do(self._people.start, run, parent).add_done_callback(lambda _: _begin(story))
        if run.pause is not None:
            self._later(run.pause.after, self._pause, run.run_id, run.pause)

    def _arm(self, run: RunPlan, life: int) -> None:
        if life < len(run.presses) and run.presses[life].at:
            self._traps.hold(run.run_id, run.presses[life].at)

    def _pause(self, run_id: str, pause: Pause) -> None:
        self._people.do(self._people.pause, run_id)
        self._later(pause.lasts, self._people.do, self._people.unpause, run_id)

    # --- Pressing Stop ----------------------------------------------------------
    def _spring_traps(self) -> None:
        now = time.monotonic()
        for story in self._stories.values():
            press = story.press
            if press is None:
                continue
            pid = self._traps.held(story.plan.run_id, press.at) if press.at else None
            if pid is not None or now - story.since >= press.after:
                self._press(story, press, pid)

    def _press(self, story: Story, press: Press, pid: int | None) -> None:
        story.is_pressed = True
        run_id = story.plan.run_id
        if pid is not None:
            self._people.tally.add("stops at a point")
            if press.kills == "before":
                self._tell({"kill": pid})
        pressed = self._people.do(self._people.stop, run_id, press)

        def let_go(_done: object) -> None:
            if pid is not None and press.kills == "after":
                self._tell({"kill": pid})
            if press.at:
                self._traps.release(run_id, press.at)

        pressed.add_done_callback(let_go)

    # --- Looking ----------------------------------------------------------
    def _look(self) -> None:
        for run in Run.objects.filter(pk__in=list(self._stories)):
            self._follow(self._stories[run.pk], run)
        self._look_for_questions()
        for run_id in [key for key, story in self._stories.items() if story.is_over]:
            self._clear(run_id)
            del self._stories[run_id]

    def _follow(self, story: Story, run: Run) -> None:
        if run.status in ACTIVE_RUN:
            if run.suspended_reason == "budget" and not story.is_raised:
                story.is_raised = True
                self._later(1.0, self._people.do, self._people.raise_limits, run.pk)
        elif run.has_ended:
            self._wrap_up(story, run)

    def _wrap_up(self, story: Story, run: Run) -> None:
        """The run has ended: undo, take it up again, or leave it."""
        now = time.monotonic()
        if story.ended_at is None:
            story.ended_at = now
            if story.plan.undo:
                self._people.do(self._people.undo, story.plan.run_id, story.plan.undo)
        is_wanted = story.life < story.plan.resumes and run.is_stopped
        if not is_wanted or now - story.ended_at > DIRTY_PATIENCE:
            story.is_over = True
        elif run.status == "stopped_clean" and now - story.ended_at > 0.5:
            story.life += 1
            story.since, story.ended_at = now, None
            story.is_pressed = story.is_raised = False
            self._clear(run.pk)
            self._arm(story.plan, story.life)
            self._people.do(self._people.resume, run.pk, story.plan.frozen)

    def _clear(self, run_id: str) -> None:
        self._people.tally.add("doorbells lost", self._traps.clear(run_id))

    def _look_for_questions(self) -> None:
        asking = ToolCall.objects.filter(run__in=list(self._stories), state="awaiting_approval")
        for call_id, run_id, number in asking.values_list("pk", "run_id", "number"):
            story = self._stories[run_id]
            if call_id in story.asked:
                continue
            story.asked.add(call_id)
            decision = plan.decision(self._tempo.seed, story.plan.number, number)
            if decision.verdict:
                decide = self._people.decide
                self._later(decision.after, self._people.do, decide, call_id, decision)

    def _look_for_doubts(self) -> None:
        """What no look-up resolves, somebody looks for, once nobody can still be sending it."""
        for call in open_doubts():
            if call.pk in self._answering:
                continue
            self._answering.add(call.pk)
            word = plan.stream(self._tempo.seed, "answer", call.run_id, call.number)
            if word.random() < CANNOT_TELL:
                self._people.do(self._people.cannot_tell, call.pk)
            self._later(SURE_AFTER, self._people.do, self._people.answer, call.pk)


def _begin(story: Story) -> None:
    story.since = time.monotonic()
    story.is_begun = True


def open_doubts() -> Iterator[ToolCall]:
    """The calls in doubt that wait for a person."""
    yield from ToolCall.objects.filter(state="in_doubt", next_lookup_at=None)
