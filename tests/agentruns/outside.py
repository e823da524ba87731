"""Tools of the tests' own, and the outside world that they act on: in memory, but truly kept.

`test.note` reads, `test.book` can be undone and looked up, `test.post` can be partly undone and
not be looked up, `test.send` cannot be undone, `test.draft` prepares before it sends.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from tools import registry
from tools.contract import Context, Draft, LookupResult, NotLanded, Receipt, Tier, UndoReceipt
from tools.errors import NoEffect


class AnswerLost(Exception):
    """The connection broke after the request was sent."""


@dataclass
class Outside:
    """What happened out there, by request_id, and how the outside behaves next.

    `answers` maps a tool's name to what its next commits do: `lost` has the effect but no
    answer, `gone` has neither, `refused` is known to have had no effect.
    """

    effects: list[tuple[str, str]] = field(default_factory=list)  # (tool, request_id)
    attempts: list[tuple[str, str]] = field(default_factory=list)
    drafts: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)
    lookups: list[str] = field(default_factory=list)
    is_dark: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def act(self, tool: str, ctx: Context, draft: Draft | None = None) -> Receipt:
        """One request to the outside, which keeps the effect once per key."""
        answer = self.answers.get(tool, "")
        with self.lock:
            self.attempts.append((tool, ctx.request_id))
            if answer == "refused":
                raise NoEffect("refused", "The outside said no.")
            if answer != "gone":
                self.effects.append((tool, ctx.request_id))
        if answer in ("lost", "gone"):
            raise AnswerLost("connection reset")
        return Receipt({"key": ctx.request_id}, f"{tool} is done.")

    def find(self, ctx: Context) -> LookupResult:
        """By key; it never acts."""
        with self.lock:
            self.lookups.append(ctx.request_id)
            if self.is_dark:
                raise AnswerLost("nobody answers")
            known = [key for _tool, key in self.effects if key == ctx.request_id]
        return Receipt({"key": ctx.request_id}, "It is there.") if known else NotLanded()

    def remove(self, ctx: Context) -> UndoReceipt:
        with self.lock:
            self.effects = [each for each in self.effects if each[1] != ctx.request_id]
        return UndoReceipt({"key": ctx.request_id}, "It is gone again.")


outside = Outside()


class Args(BaseModel):
    what: str
    count: int = 1


class Note:
    """Reads."""

    title = "Read a note"

    def describe(self, args: Args) -> str:
        return f"read “{args.what}”"

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act("test.note", ctx)


class Book:
    title = "Book"
    undo_note = "The booking is cancelled."

    def describe(self, args: Args) -> str:
        return f"book “{args.what}”"

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act("test.book", ctx)

    def lookup(self, ctx: Context) -> LookupResult:
        return outside.find(ctx)

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoReceipt:
        return outside.remove(ctx)


class Post:
    title = "Post"
    undo_note = "The message is deleted; people may have read it."

    def describe(self, args: Args) -> str:
        return f"post “{args.what}”"

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act("test.post", ctx)

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoReceipt:
        return outside.remove(ctx)


class Send:
    title = "Send"
    undo_note = "Write to the person."

    def describe(self, args: Args) -> str:
        return f"send “{args.what}”"

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act("test.send", ctx)

    def lookup(self, ctx: Context) -> LookupResult:
        return outside.find(ctx)


class Drafted:
    title = "Draft, then send"
    undo_note = "The draft is closed."

    def describe(self, args: Args) -> str:
        return f"draft “{args.what}”"

    def prepare(self, ctx: Context, args: Args) -> Draft:
        outside.drafts.add(ctx.request_id)
        if outside.answers.get("test.draft") == "unprepared":
            raise AnswerLost("no room for drafts")
        return Draft({"key": ctx.request_id})

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        assert draft == Draft({"key": ctx.request_id})
        return outside.act("test.draft", ctx, draft)

    def void(self, ctx: Context, draft: Draft) -> None:
        outside.voided.add(draft.data["key"])

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoReceipt:
        return outside.remove(ctx)


TOOLS: dict[str, tuple[Tier, type[Any]]] = {
    "test.note": (Tier.READ_ONLY, Note),
    "test.book": (Tier.REVERSIBLE, Book),
    "test.post": (Tier.COMPENSABLE, Post),
    "test.send": (Tier.IRREVERSIBLE, Send),
    "test.draft": (Tier.REVERSIBLE, Drafted),
}


@contextmanager
def registered() -> Iterator[Outside]:
    """The tools, for as long as a test runs; the outside begins empty."""
    fresh = Outside()
    for name in ("effects", "attempts", "drafts", "voided", "answers", "lookups", "is_dark"):
        setattr(outside, name, getattr(fresh, name))
    for name, (tier, tool) in TOOLS.items():
        registry.tool(name, tier=tier, args=Args)(tool)
    try:
        yield outside
    finally:
        for name in TOOLS:
            registry.unregister(name)
