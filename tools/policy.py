"""What a tool may do right now: the stricter of its code, its row and its proposal."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from tools import prepared, registry
from tools.contract import Tier, stricter
from tools.models import Tool

TOOLS = prepared.Rows(Tool)
LOOSEN_IMPORTED = "tools.loosen_imported_tool"


@dataclass(frozen=True)
class Policy:
    """The answer for one moment; never kept, because an admin may tighten it meanwhile.

    `eager`: may run while the answer still streams. `approvals`: how many different people have
    to agree; `approver_group`: the id of the group that they are from, None for any reviewer.
    `why`: why they are asked, where that is for the arguments of a call.
    `timeout`: seconds for one attempt. `rate_limit`: calls per hour, None for no limit.
    `revision`: of an imported tool, what an admin was shown; a call of any other is not let out.
    """

    name: str
    known: bool
    enabled: bool
    tier: Tier
    eager: bool
    approvals: int
    timeout: float
    approver_group: int | None = None
    rate_limit: int | None = None
    revision: str = ""
    why: str = ""

    @property
    def needs_approval(self) -> bool:
        return self.approvals > 0


def effective(
    name: str, *, proposed_tier: Tier | None = None, args: dict[str, Any] | str | None = None
) -> Policy:
    """Read the Tool row afresh and combine it with the code and the tier when proposed; for one
    call, also with its `args`, as JSON.

    A name that nobody registered, or a tool without a row, is not enabled.
    """
    row = TOOLS.first("WHERE t.name = %s", [name])
    return combined(name, row, proposed_tier=proposed_tier, args=args)


def combined(
    name: str,
    row: Tool | None,
    *,
    proposed_tier: Tier | None = None,
    args: dict[str, Any] | str | None = None,
) -> Policy:
    """The same, with the Tool row as it was read a moment ago."""
    declared = registry.get(name)
    if declared is None:
        return Policy(name, False, False, Tier.IRREVERSIBLE, False, 1, 0.0)
    why = "" if args is None else declared.needs_approval(args)
    if row is None:
        tier = stricter(declared.tier, proposed_tier or declared.tier)
        return _policy(name, tier, why=why, enabled=False, timeout=declared.timeout)
    # What somebody else's description says of itself binds nobody: an admin's word does.
    code = Tier.READ_ONLY if row.is_imported else declared.tier
    tier = stricter(stricter(code, proposed_tier or code), Tier(row.tier))
    return _policy(
        name,
        tier,
        enabled=row.enabled,
        timeout=float(row.time_limit or declared.timeout),
        why=why,
        waits=row.dispatch == Tool.Dispatch.SPECULATIVE,
        approvals=row.approvals_needed,
        approver_group=row.approver_group_id,
        rate_limit=row.rate_limit,
        revision=row.imported_revision,
    )


def _policy(
    name: str, tier: Tier, *, why: str, waits: bool = False, approvals: int = 0, **more: Any
) -> Policy:
    approvals = approvals or int(tier is Tier.IRREVERSIBLE or why != "")
    return Policy(
        name=name,
        known=True,
        tier=tier,
        eager=tier is Tier.READ_ONLY and approvals == 0 and not waits,
        approvals=approvals,
        why=why,
        **more,
    )


def may_set_tier(user: Any, row: Tool, tier: Tier) -> str:
    """Why `user` may not give the tool of `row` this tier, in a sentence; "" if they may.

    `row` has the tier that holds until now. Tighten freely; a tool of our own code never becomes
    looser than its code, an imported one only by somebody who has the permission for it.
    """
    if why := row.looser_than_code(tier):
        return why
    if row.is_imported and tier in (Tier.REVERSIBLE, Tier.COMPENSABLE):
        return _("This tool was imported, and has no undo: it only reads, or cannot be undone.")
    is_looser = tier.rank < Tier(row.tier).rank
    if row.is_imported and is_looser and not user.has_perm(LOOSEN_IMPORTED):
        return _(
            "This tool was imported. To make it looser, you need the permission to loosen "
            "imported tools."
        )
    return ""


def auto_undo(names: Collection[str]) -> dict[str, str]:
    """By tool, whether what it did is undone by itself after a Stop, a value of Tool.AutoUndo; for
    a tool without a row, never.
    """
    known = dict(Tool.objects.filter(name__in=names).values_list("name", "auto_undo"))
    return {name: known.get(name, Tool.AutoUndo.NEVER) for name in names}


def sync() -> list[str]:
    """Create the Tool rows that are missing; idempotent. Returns the names created."""
    return Tool.objects.sync()
