"""Whose request is served next, where there are places for a few of them only.

Nobody's many requests keep another's one waiting: addresses take turns, and so do those who ask
from the same address. Who has been recognised before goes first: anybody can make keys up.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from agentruns.errors import TooBusy

REMEMBERED = 10_000  # who has been recognised


class Asker(NamedTuple):
    """`who`: what a session or a token is told by; empty for nobody."""

    address: str
    who: str


@dataclass(eq=False)
class _Waiting:
    asker: Asker
    thing: str
    is_known: bool
    turn: asyncio.Future[None]


class Turns:
    """`places`: how many are served at once; `of_one`: of them, for one asker, of whom `queue` may
    wait; none for longer than `patience` seconds.
    """

    def __init__(self, places: int, of_one: int, queue: int, patience: float) -> None:
        self._places, self._of_one = places, of_one
        self._queue, self._patience = queue, patience
        self._waiting: dict[Asker, deque[_Waiting]] = {}
        self._served: set[_Waiting] = set()
        self._known: OrderedDict[Asker, None] = OrderedDict()
        self._last: Counter[str | Asker] = Counter()  # by address, by asker: when it had a turn
        self._count = 0

    def recognise(self, asker: Asker) -> None:
        """It is somebody: from now on it goes before those of whom that is not known."""
        self._known[asker] = None
        self._known.move_to_end(asker)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    @asynccontextmanager
    async def turn(self, asker: Asker, thing: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it for the time of the block; of one `thing` an asker has one
        at a time. Raises TooBusy.
        """
        mine = self._waiting.setdefault(asker, deque())
        if len(mine) >= self._queue:
            raise TooBusy
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(asker, thing, asker in self._known, turn)
        mine.append(waiting)
        self._serve()
        try:
            try:
                async with asyncio.timeout(self._patience):
                    await turn
            except TimeoutError:
                raise TooBusy from None
            yield
        finally:
            self._end(waiting)

    def _serve(self) -> None:
        while len(self._served) < self._places and (found := self._first()):
            self._take(found)
            self._served.add(found)
            self._count += 1
            self._last[found.asker.address] = self._last[found.asker] = self._count
            found.turn.set_result(None)

    def _first(self) -> _Waiting | None:
        """Who is next: known ones, and of them whose address, then who, has waited longest. Those
        who are not known have half of the places. One who has just given up may still be queued.
        """
        mine = Counter(each.asker for each in self._served)
        things = {(each.asker, each.thing) for each in self._served}
        strangers = sum(not each.is_known for each in self._served)
        free = [
            next((w for w in queue if (asker, w.thing) not in things and not w.turn.done()), None)
            for asker, queue in self._waiting.items()
            if mine[asker] < self._of_one
        ]
        able = [w for w in free if w and (w.is_known or strangers < max(1, self._places // 2))]
        return min(able, key=self._place, default=None)

    def _place(self, waiting: _Waiting) -> tuple[bool, int, int]:
        asker = waiting.asker
        return (not waiting.is_known, self._last[asker.address], self._last[asker])

    def _take(self, waiting: _Waiting) -> None:
        """Out of the queue."""
        queue = self._waiting[waiting.asker]
        queue.remove(waiting)
        if not queue:
            del self._waiting[waiting.asker]

    def _end(self, waiting: _Waiting) -> None:
        if waiting in self._served:
            self._served.discard(waiting)
        elif waiting in self._waiting.get(waiting.asker, ()):
            self._take(waiting)
        if len(self._last) > REMEMBERED:
            self._last.clear()
        self._serve()
