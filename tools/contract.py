"""What a tool is made of: tiers, and the values that pass between a tool and its caller.

Pure Python. Every dataclass is frozen and holds only JSON-able data, because the caller writes
it to a ledger and reads it back in another process.
"""

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


@dataclass(frozen=True)
class Context:
    """Who asks, and under which key.

    `request_id` is the idempotency key: the same over retries, given to the outside system
    wherever it takes one. `timeout` is in seconds and holds for each answer of that system.
    """

    request_id: str
    run_id: str
    call_id: str
    actor: str
    timeout: float


@dataclass(frozen=True)
class Draft:
    """What `prepare` made ready: enough for `commit` or `void` in another process."""

    data: Data = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """Proof of the effect (`data`), and what the model is told (`response`)."""

    data: Data = field(default_factory=dict)
    response: str = ""


@dataclass(frozen=True)
class NotLanded:
    """The outside system was asked and has no such effect."""


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


LookupResult: TypeAlias = Receipt | NotLanded | Unknown
UndoResult: TypeAlias = UndoReceipt | Changed | CannotUndo


class ToolImplementation(Protocol):
    """The mandatory verbs of a tool; `args` is an instance of its pydantic model.

    The others are optional, and found by name: `prepare(ctx, args) -> Draft | None`,
    `void(ctx, draft)`, `lookup(ctx) -> LookupResult`, `compensate(ctx, receipt) -> UndoResult`.
    `commit` raises `errors.NoEffect` only where it is known that nothing happened; any other
    exception means that nobody knows.
    """

    def describe(self, args: Any) -> str:
        """One line in plain words, for people who don't program."""

    def commit(self, ctx: Context, args: Any, draft: Draft | None) -> Receipt:
        """Have the effect (for a read-only tool: read)."""
