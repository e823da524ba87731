"""A run's page as one person reads it, drawn once for all of their live pages of it.

People do not share one: a page speaks to its reader (“you pressed Stop”), and shows what they may
do. The texts of the answer, which are what costs, are shared by all (prose.py).
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from channels.db import database_sync_to_async
from django.contrib.auth import get_user_model

from agentruns.page.answer import Answer
from agentruns.page.reader import reading
from agentruns.page.run import build, find, outlines
from agentruns.postgresql.base import must_take_writes
from agentruns.postgresql.snapshot import snapshot

Result = TypeVar("Result")

# Stands where each browser has its own; at random, so that no text can have it in it.
TOKEN = secrets.token_hex(16)
ANSWER = "answer"


@dataclass(frozen=True)
class Reader:
    """For whom it is drawn: the person, and how they read."""

    user_id: int
    language: str
    zone: str


@dataclass(frozen=True)
class Drawing:
    """The page at one moment. `outlines` are its sections, the answer without its text; `pieces`
    are the elements of that text by their ids, in order; `took` is in seconds.
    """

    seq: int
    phase: str
    order: list[str]
    has_ended: bool
    answer: Answer
    outlines: dict[str, str]
    took: float = 0.0

    @cached_property
    def pieces(self) -> dict[str, str]:
        return self.answer.pieces()

    @cached_property
    def whole_answer(self) -> str:
        return self.answer.filled(self.outlines[ANSWER])

    def news(self, before: "Drawing | None", token: str) -> dict[str, str]:
        """What differs from the drawing that a page shows: sections, or pieces of the answer."""
        shown = before.outlines if before else {}
        news = {
            name: html.replace(TOKEN, token)
            for name, html in self.outlines.items()
            if html != shown.get(name)
        }
        gone = before.pieces.keys() - self.pieces.keys() if before else set()
        if ANSWER in news or gone:
            return news | {ANSWER: self.whole_answer}
        known = before.pieces if before else {}
        return news | {name: html for name, html in self.pieces.items() if html != known.get(name)}


@dataclass(eq=False)
class SharedDrawing:
    """The drawings of one run for one reader: one at a time, however many pages wait for it."""

    run_id: str
    reader: Reader
    _began: float = field(default=-1.0, init=False)
    _drawing: "asyncio.Task[Drawing | None] | None" = field(default=None, init=False)

    async def newer_than(self, moment: float) -> Drawing | None:
        """One that was begun at `moment` (time.monotonic) or later; None if the reader may not
        see the run (any more). Raises what drawing raises.
        """
        while True:
            if self._drawing is None or (self._drawing.done() and self._began < moment):
                self._began = time.monotonic()
                self._drawing = asyncio.create_task(off_loop(self._draw))
                self._drawing.add_done_callback(_seen)
            drawing, began = self._drawing, self._began
            # Whoever leaves meanwhile does not end what others wait for.
            await asyncio.wait([drawing])
            if began >= moment:
                return drawing.result()

    def _draw(self) -> Drawing | None:
        must_take_writes()  # another connection than the one that the reader was looked up by
        began = time.monotonic()
        user: Any = get_user_model().objects.filter(pk=self.reader.user_id, is_active=True).first()
        with snapshot(), reading({"timezone": self.reader.zone}, self.reader.language):
            run = find(self.run_id, user) if user else None
            if run is None:
                return None
            page = build(run, user)
            drawn = outlines(page, TOKEN)
        return Drawing(
            seq=run.ledger_seq,
            phase=page.phase,
            order=page.order,
            has_ended=page.has_ended,
            answer=page.answer,
            outlines=drawn,
            took=time.monotonic() - began,
        )


_shared: WeakValueDictionary[tuple[str, Reader], SharedDrawing] = WeakValueDictionary()


def shared_drawing(run_id: str, reader: Reader) -> SharedDrawing:
    """The one for this run and reader. It lives as long as somebody holds it."""
    found = _shared.get((run_id, reader))
    if found is None:
        found = _shared[run_id, reader] = SharedDrawing(run_id, reader)
    return found


def _seen(drawing: "asyncio.Task[Drawing | None]") -> None:
    """What went wrong is told to those who wait; if nobody does any more, nobody misses it."""
    if not drawing.cancelled():
        drawing.exception()


async def off_loop(function: Callable[..., Result], *args: Any) -> Result:
    """Call what asks the database, in a thread."""
    found: Result = await database_sync_to_async(function, thread_sensitive=False)(*args)
    return found
