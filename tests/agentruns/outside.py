"""Tools of the tests' own, and the outside world that they act on: in memory, but truly kept.

`test.note` reads, `test.book` can be undone and looked up, `test.post` can be partly undone and
not be looked up, `test.send` cannot be undone, `test.draft` prepares before it sends, and
`test.later` is held back for a minute before that. `test.sign` has a secret among its arguments;
`test.order` says what makes two orders the same. `test.reserve`, `test.pay` and `test.ship` are an
atomic unit, `test.batch` has `count` effects, and `test.migrate` cannot be interrupted.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, SecretStr

from tools import registry
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Data,
    Draft,
    FollowUp,
    LookupResult,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    UndoResult,
    Unit,
)
from tools.errors import NoEffect


class AnswerLost(Exception):
    """The connection broke after the request was sent."""


@dataclass
class Outside:
    """What happened out there, by request_id, and how the outside behaves next.

    `answers` maps a tool's name to what its next commits do, or to a list with one word for each:
    `lost` has the effect but no answer, `gone` has neither, `refused` is known to have had no
    effect, `busy` too, and may be asked again.
    """

    effects: list[tuple[str, str]] = field(default_factory=list)  # (tool, request_id)
    attempts: list[tuple[str, str]] = field(default_factory=list)
    drafts: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    answers: dict[str, str | list[str]] = field(default_factory=dict)
    lookups: list[str] = field(default_factory=list)
    is_dark: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def act(self, tool: str, ctx: Context, draft: Draft | None = None, *, key: str = "") -> Receipt:
        """One request to the outside, which keeps the effect once per key."""
        key = key or ctx.request_id
        ctx.sending()
        with self.lock:
            answer = self.next_answer(tool)
            self.attempts.append((tool, key))
            if answer == "refused":
                raise NoEffect("refused", "The outside said no.")
            if answer == "busy":
                raise NoEffect("busy", "The outside is busy.", is_passing=True)
            if answer != "gone":
                self.effects.append((tool, key))
        if answer in ("lost", "gone"):
            raise AnswerLost("connection reset")
        return Receipt({"key": key}, f"{tool} is done.")

    def next_answer(self, tool: str) -> str:
        answer = self.answers.get(tool, "")
        if isinstance(answer, list):
            return answer.pop(0) if answer else ""
        return answer

    def find(self, ctx: Context) -> LookupResult:
        """By key; it never acts."""
        with self.lock:
            self.lookups.append(ctx.request_id)
            if self.is_dark:
                raise AnswerLost("nobody answers")
            known = [key for _tool, key in self.effects if key == ctx.request_id]
        return Receipt({"key": ctx.request_id}, "It is there.") if known else NotLanded()

    def find_items(self, ctx: Context, keys: list[str]) -> LookupResult:
        """Which of the call's items are there; `keys` has their names, in order."""
        with self.lock:
            self.lookups.append(ctx.request_id)
            there = {key for _tool, key in self.effects}
        numbered = enumerate(keys, 1)
        found = {name: {"id": ctx.item_id(n)} for n, name in numbered if ctx.item_id(n) in there}
        return Receipt({"items": found})

    def remove(self, ctx: Context) -> UndoResult:
        """Undo it; the answer for `undo` may be `lost`, `changed` or `impossible`."""
        with self.lock:
            answer = self.next_answer("undo")
            if answer == "changed":
                return Changed("It says something else now.")
            if answer == "impossible":
                return CannotUndo("The outside does not do that.")
            if answer == "lost":
                raise AnswerLost("connection reset")
            self.effects = [each for each in self.effects if each[1] != ctx.request_id]
        return UndoReceipt({"key": ctx.request_id}, "It is gone again.")


outside = Outside()
HELD = 60.0  # seconds


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

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        return outside.remove(ctx)


class Order(Book):
    """The same order is one of the same thing, however many."""

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act("test.order", ctx)

    def effect_of(self, args: Args) -> Data:
        return {"what": args.what}


class Post:
    title = "Post"
    undo_note = "The message is deleted; people may have read it."

    def describe(self, args: Args) -> str:
        return f"post “{args.what}”"

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act("test.post", ctx)

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        return outside.remove(ctx)


class Send:
    title = "Send"
    undo_note = "Write to the person."

    def describe(self, args: Args) -> str:
        return f"send “{args.what}”"

    def follow_up(self, args: Args) -> FollowUp:
        return FollowUp("Send it better", f"Send “{args.what}” & more, better")

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act("test.send", ctx)

    def lookup(self, ctx: Context) -> LookupResult:
        return outside.find(ctx)


class Drafted:
    name = "test.draft"
    title = "Draft, then send"
    undo_note = "The draft is closed."

    def describe(self, args: Args) -> str:
        return f"draft “{args.what}”"

    def prepare(self, ctx: Context, args: Args) -> Draft:
        outside.drafts.add(ctx.request_id)
        answer = outside.next_answer("test.draft.prepare")
        if answer == "gone":
            raise AnswerLost("no room for drafts")
        if answer == "busy":
            raise NoEffect("busy", "The outside is busy.", is_passing=True)
        return Draft({"key": ctx.request_id})

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        assert draft == Draft({"key": ctx.request_id})
        return outside.act(self.name, ctx, draft)

    def void(self, ctx: Context, draft: Draft) -> None:
        outside.voided.add(ctx.request_id)

    def drafts(self) -> set[str]:
        return outside.drafts - outside.voided

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        return outside.remove(ctx)


class Later(Drafted):
    name = "test.later"

    def prepare(self, ctx: Context, args: Args) -> Draft:
        return Draft({"key": ctx.request_id}, hold=HELD)

    def drafts(self) -> set[str]:
        return set()


class SignArgs(Args):
    token: SecretStr
    others: dict[str, list[SecretStr]] = {}


class Sign(Book):
    """Tells the outside what it was given: nobody else is told."""

    def describe(self, args: Args) -> str:
        assert isinstance(args, SignArgs)
        return f"sign “{args.what}” with {args.token}"

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        assert isinstance(args, SignArgs)
        return outside.act("test.sign", ctx, key=args.token.get_secret_value())


class Step(Book):
    """A step of an order, which is told from others by what is ordered."""

    name = ""
    undo_note = "The step is taken back."

    def unit_key(self, args: Args) -> str:
        return args.what

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act(self.name, ctx)


class Reserve(Step):
    name = "test.reserve"


class Pay(Step):
    name = "test.pay"


class Ship(Step):
    name = "test.ship"


class Batch:
    """`count` effects, each with a receipt of its own."""

    title = "Do many"
    undo_note = "Each of them is taken back."
    most = 40

    def describe(self, args: Args) -> str:
        return f"do “{args.what}” {args.count} times"

    def item_keys(self, args: Args) -> list[str]:
        return [f"{args.what} {n}" for n in range(1, args.count + 1)]

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        done = ctx.items.done()
        for number, key in enumerate(self.item_keys(args), 1):
            if key not in done:
                outside.act("test.batch", ctx, key=ctx.item_id(number))
                ctx.checkpoint(key, {"id": ctx.item_id(number)})
        return Receipt({}, "All of them are done.")

    def lookup(self, ctx: Context) -> LookupResult:
        keys = [f"it {n}" for n in range(1, self.most + 1)]
        return outside.find_items(ctx, keys)

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        return outside.remove(ctx)


class Migrate(Book):
    """Once it has begun, it is not to be interrupted."""

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return outside.act("test.migrate", ctx)


PLAIN: dict[str, tuple[Tier, type[Any]]] = {
    "test.note": (Tier.READ_ONLY, Note),
    "test.book": (Tier.REVERSIBLE, Book),
    "test.post": (Tier.COMPENSABLE, Post),
    "test.send": (Tier.IRREVERSIBLE, Send),
    "test.draft": (Tier.REVERSIBLE, Drafted),
}
TOOLS: dict[str, tuple[Tier, type[Any]]] = PLAIN | {
    "test.reserve": (Tier.REVERSIBLE, Reserve),
    "test.pay": (Tier.REVERSIBLE, Pay),
    "test.ship": (Tier.REVERSIBLE, Ship),
    "test.batch": (Tier.REVERSIBLE, Batch),
    "test.migrate": (Tier.REVERSIBLE, Migrate),
    "test.later": (Tier.COMPENSABLE, Later),
    "test.sign": (Tier.REVERSIBLE, Sign),
    "test.order": (Tier.REVERSIBLE, Order),
}
HORIZON = 5.0  # seconds for which the outside may act on what was sent
USUAL: dict[str, Any] = {"args": Args, "horizon": HORIZON}
DECLARED: dict[str, dict[str, Any]] = {
    "test.reserve": {"unit": Unit("order", 1, 3)},
    "test.pay": {"unit": Unit("order", 2, 3)},
    "test.ship": {"unit": Unit("order", 3, 3)},
    "test.migrate": {"uninterruptible": True},
    "test.sign": {"args": SignArgs},
}


@contextmanager
def registered() -> Iterator[Outside]:
    """The tools, for as long as a test runs; the outside begins empty."""
    fresh = Outside()
    for name in ("effects", "attempts", "drafts", "voided", "answers", "lookups", "is_dark"):
        setattr(outside, name, getattr(fresh, name))
    for name, (tier, tool) in TOOLS.items():
        registry.tool(name, tier=tier, **(USUAL | DECLARED.get(name, {})))(tool)
    try:
        yield outside
    finally:
        for name in TOOLS:
            registry.unregister(name)
