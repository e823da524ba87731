"""Play cells on real workers: many at a time, and in batches where they share one disturbance.

A batch holds every one of its runs at its boundary, has one thing go wrong for all of them (one
kill, one restart), and lets them go.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, islice
from random import Random

from django.db import DatabaseError, InterfaceError, connection
from kombu.exceptions import OperationalError

from agentruns.celery import app
from agentruns.drill.errors import PointMissed
from agentruns.drill.hands import Apart
from agentruns.drill.play import AFTERMATH, Drill
from agentruns.drill.points import NEVER, Point, point
from agentruns.errors import AgentrunsError
from agentruns.models import Run
from agentruns.services.stack import Stack
from tests.matrix.axes import BOUNDARIES, Disturbance, Who
from tests.matrix.cells import Cell
from tests.matrix.check import Ended, Result, check, has_turned_up, was_sent
from tests.matrix.plans import plan_of

LOOK_EVERY = 0.1  # seconds
SWEEP_EVERY = 1.0  # seconds, beside beat's, while a sweeper has yet to come to a boundary
GATHER_LIMIT = 45.0  # seconds until a batch goes on without those who are not there
PRESS_LIMIT = 10.0  # seconds until all have pressed Stop
STUCK_AFTER = 120.0  # seconds without a new event; how long all of it takes says what machine it is
CELL_LIMIT = 480.0  # seconds
AWAY = (DatabaseError, InterfaceError)


@dataclass
class Playing:
    """One cell on its way."""

    cell: Cell
    drill: Drill
    began: float = field(default_factory=time.monotonic)
    over_at: float = 0.0
    trouble: str = ""
    has_missed: bool = False
    events: int = 0
    moved_at: float = field(default_factory=time.monotonic)  # when the last of them was seen
    since: float = 0.0  # when it came to its boundary

    def step(self, run: Run | None) -> None:
        """Do what is to be done now. A database that is away comes back."""
        try:
            if run is not None and self.drill.step(run) and self._is_all_told(run):
                self.over_at = time.monotonic()
            if run is not None and self._may_end(run):
                self.drill.let_go(but=[self.boundary])
        except PointMissed as error:
            self.has_missed = True
            self._fail(str(error))
        except AgentrunsError as error:
            self._fail(str(error))
        except AWAY:
            connection.close()
        if not self.since and self.waits("gather"):
            self.since = time.monotonic()
        if self.since and time.monotonic() - self.since >= self.cell.boundary.patience:
            self.drill.go_on()
        if run is not None and run.ledger_seq != self.events:
            self.events, self.moved_at = run.ledger_seq, time.monotonic()
        if not self.over_at:
            self._fail_if_stuck()

    def _fail_if_stuck(self) -> None:
        now = time.monotonic()
        if now - self.moved_at > STUCK_AFTER:
            self._fail(f"I10 it did not move for {STUCK_AFTER:.0f} s")
        elif now - self.began > CELL_LIMIT:
            self._fail(f"I10 it was not over after {CELL_LIMIT:.0f} s")

    def _may_end(self, run: Run) -> bool:
        """Whether nobody needs to be kept any more but at the boundary. A driver that came too
        early to where a resumed run is to be kept has lost its lease, and is only in the way.
        """
        boundary = self.cell.boundary
        if boundary.way.parent:
            return not run.is_active
        is_early = self.drill.waits_at(point(boundary.last_turn or NEVER), "keep")
        return run.has_ended and (is_early or not boundary.way.resumes)

    def _is_all_told(self, run: Run) -> bool:
        """Whether what the outside does late is on record, by however late a look-up."""
        if not self.cell.is_found_late or not was_sent(run):
            return True
        return has_turned_up(self.cell, run)

    def let_go(self) -> None:
        """Let it go on. A child would come to its end if the sweeper was not there in time: it
        goes on only once it is stopped.
        """
        elsewhere = [at for at in self.drill.plan.keep_at if at != self.boundary]
        self.drill.let_go(but=elsewhere if self.cell.boundary.way.parent else [])

    def _fail(self, trouble: str) -> None:
        self.trouble, self.over_at = trouble, time.monotonic()

    @property
    def boundary(self) -> Point:
        return point(self.cell.boundary.point)

    def waits(self, *to: str) -> bool:
        """Whether it waits at its boundary for one of these, or never will."""
        return bool(self.over_at) or any(self.drill.waits_at(self.boundary, act) for act in to)

    def ended(self) -> Ended:
        answers = [press.result().get("answer") for press in self.drill.presses if press.done()]
        ended = Ended(
            self.cell,
            self.drill.run_id,
            round(self.over_at - self.began, 1),
            played=None if self.trouble else self.drill.played(),
            answers=tuple(answer for answer in answers if answer),
            trouble=self.trouble,
        )
        self.drill.close(is_given_up=bool(self.trouble))
        return ended


class Player:
    """Plays cells on a stack. `say` is told of each result."""

    def __init__(self, stack: Stack, width: int, say: Callable[[Result], None]) -> None:
        self._stack = stack
        self._width = width
        self._say = say
        self._hands = Apart()
        self._playing: list[Playing] = []
        self._over: list[Playing] = []
        self._missed: list[Cell] = []
        self._is_last = False
        self._swept_at = 0.0

    def close(self) -> None:
        self._hands.close()

    def play(self, cells: Iterable[Cell]) -> None:
        """All of them, the shared ones last; and again those that something else kept from their
        boundary, such as a machine that had too much to do.
        """
        chosen = list(cells)
        for is_last in (False, False, True):
            self._is_last = is_last
            self._play_apart([cell for cell in chosen if not cell.is_shared])
            for batch in batches([cell for cell in chosen if cell.is_shared], self._width):
                self._play_batch(batch)
            chosen, self._missed = self._missed, []

    def _play_apart(self, cells: list[Cell]) -> None:
        """In any order, so that those that take long go beside the others."""
        waiting = Random(1).sample(cells, len(cells))
        while waiting or self._playing:
            while waiting and len(self._playing) < self._width:
                self._begin(waiting.pop())
            self._step()
            for each in self._playing:
                if each.drill.has_passed(each.boundary):
                    each.let_go()
            self._take_over(at_least=self._width)
        self._take_over(at_least=0)

    def _play_batch(self, cells: list[Cell]) -> None:
        for cell in cells:
            self._begin(cell)
        self._until_all_wait("gather", "keep", limit=GATHER_LIMIT)
        for each in self._playing:
            each.drill.go_on()
        self._until_all_wait("keep", limit=PRESS_LIMIT)
        self._disturb(cells[0])
        for each in self._playing:
            each.let_go()
        while self._playing:
            self._step()
        self._take_over(at_least=0)
        if part_of(cells[0]) != Who.PERSON:
            self._stack.wait_for(part_of(cells[0]))

    def _until_all_wait(self, *to: str, limit: float) -> None:
        until = time.monotonic() + limit
        while time.monotonic() < until and not all(each.waits(*to) for each in self._playing):
            self._step()

    def _disturb(self, cell: Cell) -> None:
        """What happens to all of them. Whatever is killed comes back by itself."""
        if cell.disturbance is Disturbance.KILL and cell.boundary.who is Who.PERSON:
            self._hands.kill()
        else:
            self._stack.kill(part_of(cell))

    def _begin(self, cell: Cell) -> None:
        drill = Drill(plan_of(cell), self._hands)
        drill.__enter__()
        self._playing.append(Playing(cell, drill))

    def _step(self) -> None:
        began = time.monotonic()
        try:
            runs = Run.objects.in_bulk([each.drill.run_id for each in self._playing])
        except AWAY:
            connection.close()
            runs = {}
        for each in self._playing:
            each.step(runs.get(each.drill.run_id))
        self._over += [each for each in self._playing if each.over_at]
        self._playing = [each for each in self._playing if not each.over_at]
        self._sweep()
        time.sleep(max(0.0, LOOK_EVERY - (time.monotonic() - began)))

    def _sweep(self) -> None:
        """Each sweep is held at one run at most: more of them hold more runs."""
        now = time.monotonic()
        if now - self._swept_at < SWEEP_EVERY or not any(map(_awaits_sweeper, self._playing)):
            return
        self._swept_at = now
        with suppress(OperationalError):  # beat goes on sweeping
            app.send_task("agentruns.tasks.sweep", retry=False, expires=5)
            app.send_task("compensation.tasks.sweep", retry=False, expires=5)

    def _take_over(self, *, at_least: int) -> None:
        """Check what is over, a moment after it is: something late would show by then."""
        if len(self._over) < max(1, at_least):
            return
        if not at_least:
            time.sleep(AFTERMATH)
        late = time.monotonic() - AFTERMATH
        ripe = [each for each in self._over if each.over_at <= late]
        self._over = [each for each in self._over if each.over_at > late]
        ended = []
        for each in ripe:
            if each.has_missed and not self._is_last:
                each.drill.close(is_given_up=True)
                self._missed.append(each.cell)
            else:
                ended.append(each.ended())
        for result in check(ended):
            self._say(result)


def batches(cells: list[Cell], width: int) -> Iterator[list[Cell]]:
    """Cells that share a disturbance, with those together that come there at the same time."""
    order = {boundary: place for place, boundary in enumerate(BOUNDARIES)}

    def shared(cell: Cell) -> tuple[str, str, float]:
        return cell.disturbance, part_of(cell), cell.boundary.patience

    ordered = sorted(cells, key=lambda cell: (*shared(cell), order[cell.boundary]))
    for _shared, group in groupby(ordered, key=shared):
        while batch := list(islice(group, width)):
            yield batch


def part_of(cell: Cell) -> str:
    """The part of the stack that the disturbance of a batch hits."""
    if cell.disturbance is Disturbance.REDIS:
        return "valkey"
    return "postgres" if cell.disturbance is Disturbance.POSTGRES else str(cell.boundary.who)


def _awaits_sweeper(each: Playing) -> bool:
    return each.cell.boundary.who is Who.CONTROL and not (
        each.waits("gather", "keep") or each.drill.has_passed(each.boundary)
    )
