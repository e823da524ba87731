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
from agentruns.drill.hands import Apart
from agentruns.drill.play import AFTERMATH, Drill
from agentruns.drill.points import point
from agentruns.errors import AgentrunsError
from agentruns.models import Run
from agentruns.services.stack import Stack
from tests.matrix.axes import BOUNDARIES, Disturbance, Who
from tests.matrix.cells import Cell
from tests.matrix.check import Ended, Result, check
from tests.matrix.plans import plan_of

LOOK_EVERY = 0.1  # seconds
SWEEP_EVERY = 1.0  # seconds, beside beat's, while a sweeper has yet to come to a boundary
GATHER_LIMIT = 45.0  # seconds until a batch goes on without those who are not there
CELL_LIMIT = 150.0  # seconds
AWAY = (DatabaseError, InterfaceError)


@dataclass
class Playing:
    """One cell on its way."""

    cell: Cell
    drill: Drill
    began: float = field(default_factory=time.monotonic)
    over_at: float = 0.0
    trouble: str = ""

    def step(self, run: Run | None) -> None:
        """Do what is to be done now. A database that is away comes back."""
        try:
            if run is not None and self.drill.step(run):
                self.over_at = time.monotonic()
        except AgentrunsError as error:
            self._fail(str(error))
        except AWAY:
            connection.close()
        if not self.over_at and time.monotonic() - self.began > CELL_LIMIT:
            self._fail(f"I10 it was not over after {CELL_LIMIT:.0f} s")

    def _fail(self, trouble: str) -> None:
        self.trouble, self.over_at = trouble, time.monotonic()

    @property
    def is_gathered(self) -> bool:
        """Whether it waits at its boundary, or never will."""
        return bool(self.over_at) or self.drill.waits_at(point(self.cell.boundary.point))

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
        self._swept_at = 0.0

    def close(self) -> None:
        self._hands.close()

    def play(self, cells: Iterable[Cell]) -> None:
        """All of them, the shared ones last."""
        chosen = list(cells)
        self._play_apart([cell for cell in chosen if not cell.is_shared])
        for batch in batches([cell for cell in chosen if cell.is_shared], self._width):
            self._play_batch(batch)

    def _play_apart(self, cells: list[Cell]) -> None:
        """In any order, so that those that take long go beside the others."""
        waiting = Random(1).sample(cells, len(cells))
        while waiting or self._playing:
            while waiting and len(self._playing) < self._width:
                self._begin(waiting.pop())
            self._step()
            for each in self._playing:
                if each.drill.has_passed(point(each.cell.boundary.point)):
                    each.drill.let_go()
            self._take_over(at_least=self._width)
        self._take_over(at_least=0)

    def _play_batch(self, cells: list[Cell]) -> None:
        for cell in cells:
            self._begin(cell)
        until = time.monotonic() + GATHER_LIMIT
        while not all(each.is_gathered for each in self._playing) and time.monotonic() < until:
            self._step()
        self._disturb(cells[0])
        for each in self._playing:
            each.drill.let_go()
        while self._playing:
            self._step()
        self._take_over(at_least=0)
        if part_of(cells[0]) != Who.PERSON:
            self._stack.wait_for(part_of(cells[0]))

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
        for result in check([each.ended() for each in ripe]):
            self._say(result)


def batches(cells: list[Cell], width: int) -> Iterator[list[Cell]]:
    """Cells that share a disturbance, with neighbours among the boundaries together."""
    order = {boundary: place for place, boundary in enumerate(BOUNDARIES)}
    ordered = sorted(cells, key=lambda c: (c.disturbance, part_of(c), order[c.boundary]))
    for _shared, group in groupby(ordered, key=lambda c: (c.disturbance, part_of(c))):
        while batch := list(islice(group, width)):
            yield batch


def part_of(cell: Cell) -> str:
    """The part of the stack that the disturbance of a batch hits."""
    if cell.disturbance is Disturbance.REDIS:
        return "valkey"
    return "postgres" if cell.disturbance is Disturbance.POSTGRES else str(cell.boundary.who)


def _awaits_sweeper(each: Playing) -> bool:
    boundary = each.cell.boundary
    return boundary.who is Who.CONTROL and not (
        each.is_gathered or each.drill.has_passed(point(boundary.point))
    )
