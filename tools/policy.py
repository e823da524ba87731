"""What a tool may do right now: the stricter of its code, its row and its proposal."""

from dataclasses import dataclass

from tools import prepared, registry
from tools.contract import Tier, stricter
from tools.models import Tool

TOOLS = prepared.Rows(Tool)


@dataclass(frozen=True)
class Policy:
    """The answer for one moment; never kept, because an admin may tighten it meanwhile.

    `eager`: may run while the answer still streams. `timeout`: seconds for one attempt.
    """

    name: str
    known: bool
    enabled: bool
    tier: Tier
    eager: bool
    needs_approval: bool
    timeout: float


def effective(name: str, *, proposed_tier: Tier | None = None) -> Policy:
    """Read the Tool row afresh and combine it with the code and the tier when proposed.

    A name that nobody registered, or a tool without a row, is not enabled.
    """
    return combined(name, TOOLS.first("WHERE t.name = %s", [name]), proposed_tier=proposed_tier)


def combined(name: str, row: Tool | None, *, proposed_tier: Tier | None = None) -> Policy:
    """The same, with the Tool row as it was read a moment ago."""
    declared = registry.get(name)
    if declared is None:
        return Policy(name, False, False, Tier.IRREVERSIBLE, False, True, 0.0)
    tier = stricter(declared.tier, proposed_tier or declared.tier)
    if row is not None:
        tier = stricter(tier, Tier(row.tier))
    forced = row is not None and row.dispatch == Tool.Dispatch.SPECULATIVE
    asks = row is not None and row.approval == Tool.Approval.ALWAYS
    return Policy(
        name=name,
        known=True,
        enabled=row is not None and row.enabled,
        tier=tier,
        eager=tier is Tier.READ_ONLY and not forced,
        needs_approval=tier is Tier.IRREVERSIBLE or asks,
        timeout=declared.timeout,
    )


def auto_undo(name: str) -> str:
    """Whether what this tool did is undone by itself after a Stop, a value of Tool.AutoUndo; for
    a tool without a row, never.
    """
    row = TOOLS.first("WHERE t.name = %s", [name])
    return row.auto_undo if row is not None else Tool.AutoUndo.NEVER


def sync() -> list[str]:
    """Create the Tool rows that are missing; idempotent. Returns the names created."""
    return Tool.objects.sync()
