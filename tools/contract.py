"""What a tool is made of: tiers, and the values that pass between a tool and its caller.

Pure Python. Drafts and receipts hold only JSON-able data, because the caller writes them to a
ledger and reads them back in another process.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

Data: TypeAlias = dict[str, Any]


class Tier(StrEnum):
    """How far an effect can be taken back. Declared in code; an admin may only tighten it."""

    READ_ONLY = "read_only"
    REVERSIBLE = "reversible"
    COMPENSABLE = "compensable"
    IRREVERSIBLE = "irreversible"

    @property
    def rank(self) -> int:
        """0 for the least strict tier, 3 for the strictest."""
        return list(Tier).index(self)


def stricter(a: Tier, b: Tier) -> Tier:
    """The one of the two that allows less."""
    return a if a.rank >= b.rank else b


class StopSignal(BaseException):
    """Stop, as it travels through a driver and its tools.

    A BaseException, so that no `except Exception` on the way swallows it.
    """


class PauseSignal(BaseException):
    """Pause, on the same way: the call goes on later, after the items that it has done."""


@dataclass(frozen=True)
class Unit:
    """One step of something that is only finished or not begun: “transfer, step 2 of 2”.

    Steps with the same `name` and the same `unit_key(args)`, asked for in one answer, belong
    together. `step` counts from 1.
    """

    name: str
    step: int
    of: int


class ItemLog(Protocol):
    """Which items of a call are out there, by key, each with its receipt."""

    def done(self) -> dict[str, Data]:
        """The items of this call so far, those of earlier attempts too."""

    def land(self, key: str, receipt: Data) -> None:
        """Keep the receipt of one item. Raises StopSignal or PauseSignal if it was the last."""


@dataclass(frozen=True)
class ItemsInMemory:
    """For a caller without a ledger: whoever has it, has the receipts, and nobody stops it."""

    kept: dict[str, Data] = field(default_factory=dict)

    def done(self) -> dict[str, Data]:
        return dict(self.kept)

    def land(self, key: str, receipt: Data) -> None:
        self.kept[key] = receipt


def _unmeasured() -> None:
    """For a caller who does not measure when a tool sends."""


def _never() -> bool:
    """For a caller whom nobody stops."""
    return False


def _untold(kind: str, /, **data: Any) -> None:
    """For a caller without a ledger."""


@dataclass(frozen=True)
class Context:
    """Who asks, and under which key.

    `request_id` is the idempotency key: the same over retries, given to the outside system
    wherever it takes one. `timeout` is in seconds and holds for each answer of that system; a
    tool with items has it anew for each item. `sending()` is called by `commit` right before the
    first byte of the effect leaves: by it the caller knows how long the tool took to get there. It
    raises NoEffect if that was too long: let it through.

    `is_stopped()`: whether a person has stopped what this call is part of; cheap enough to be asked
    about twice a second by a `commit` that waits for an answer, and can ask for an end of the work.
    `tell(kind, **data)` keeps a fact about the call on record, e.g. that it asked for that. Both
    are called from the thread that `commit` was called in.
    """

    request_id: str
    run_id: str
    call_id: str
    actor: str
    timeout: float
    items: ItemLog = field(default_factory=ItemsInMemory)
    sending: Callable[[], None] = _unmeasured
    is_stopped: Callable[[], bool] = _never
    tell: Callable[..., None] = _untold

    def item_id(self, number: int) -> str:
        """The idempotency key of one item, by its place (1, 2, …) among the call's keys."""
        return f"{self.request_id}/{number}"

    def checkpoint(self, key: str, receipt: Data | None = None) -> None:
        """Between two items: the one of `key` has had its effect.

        Raises StopSignal or PauseSignal where no further item may follow: let it through.
        """
        self.items.land(key, receipt or {})


@dataclass(frozen=True)
class Draft:
    """What `prepare` made ready: enough for `commit` or `void` in another process.

    `hold`: for so many seconds it is kept back before it may go out, and can be taken back by
    whoever changes their mind.
    """

    data: Data = field(default_factory=dict)
    hold: float = 0.0


@dataclass(frozen=True)
class Receipt:
    """Proof of the effect (`data`), and what the model is told (`response`)."""

    data: Data = field(default_factory=dict)
    response: str = ""


@dataclass(frozen=True)
class NotLanded:
    """The outside system was asked and has no such effect so far. Until the tool's horizon is over,
    it may still come.
    """


@dataclass(frozen=True)
class Unknown:
    """The outside system could not be asked, or its answer decides nothing."""

    reason: str


@dataclass(frozen=True)
class UndoReceipt:
    """The effect is undone. `note` says in plain words what that does not cover."""

    data: Data = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Changed:
    """Somebody changed the thing since, so it was left alone. `what` says what was found."""

    what: str


@dataclass(frozen=True)
class CannotUndo:
    """It cannot be undone, for the reason given."""

    why: str


@dataclass(frozen=True)
class FollowUp:
    """What a person may want next where nothing can be undone: `label` is for a link, `goal` is
    what an agent would be asked to do, to be changed by the person before it is.
    """

    label: str
    goal: str


LookupResult: TypeAlias = Receipt | NotLanded | Unknown
UndoResult: TypeAlias = UndoReceipt | Changed | CannotUndo


class ToolImplementation(Protocol):
    """The mandatory verbs of a tool; `args` is an instance of its pydantic model.

    The others are optional, and found by name: `prepare(ctx, args) -> Draft | None`,
    `void(ctx, draft)`, `lookup(ctx) -> LookupResult`, `compensate(ctx, receipt) -> UndoResult`.
    `commit` raises `errors.NoEffect` only where it is known that nothing happened; any other
    exception means that nobody knows (`errors.Unclear`: and says to people what was answered).
    Right before it sends, it calls `ctx.sending()`.

    A tool whose `prepare` leaves something outside of the ledger (a staged file, a prepared
    transaction) has `drafts() -> Iterable[str]`: the request ids of all that is there now. Its
    `void` finds it by `ctx.request_id` alone, and takes it kindly if there is nothing; its `commit`
    prepares anew if what it was given is gone.

    Arguments that are secret are declared as pydantic's `SecretStr`, and shown to nobody. The
    secret itself is forgotten once the call has ended; so no draft and no receipt may hold it.

    Two calls of the same arguments have the same effect; where others have it too, a tool says by
    `effect_of(args) -> Data` what it takes: the customer and the amount, whatever the words.

    A tool of which some calls need a person's approval for what is in their arguments has
    `needs_approval(args) -> str`: why, in one sentence for that person; "" for a call of which the
    tier alone decides. It can only ask for more, never for less. It looks at nothing outside.

    What cannot be undone may have `follow_up(args) -> FollowUp`: what a person can do about it.

    A step of an atomic unit has `unit_key(args) -> str`: what tells one unit from another.

    A tool whose call has several effects has `item_keys(args) -> list[str]`: a name for each, in
    order. Its `commit` skips what `ctx.items.done()` has, has the effect of one item under
    `ctx.item_id(number)`, calls `ctx.checkpoint(key, receipt)`, and so on. `NoEffect` then means
    that the item under way had none. Its `lookup` answers with `Receipt({"items": {key: receipt}})`
    for what is out there, be it all of them or not. In every receipt that the ledger keeps,
    `items` has what was done, and `of` how many were asked for.
    """

    def describe(self, args: Any) -> str:
        """One line in plain words, for people who don't program."""

    def commit(self, ctx: Context, args: Any, draft: Draft | None) -> Receipt:
        """Have the effect (for a read-only tool: read)."""
