"""Changes of the policy of tools: who made them and why, kept in the same transaction.

The row's history is written by the database (tools/models.py). Whoever was asked for the effect
on calls that wait, asks agentruns.protocol.recheck afterwards: tools know nothing of runs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pghistory
from django.db import transaction

from tools.contract import Tier
from tools.models import Tool

REASON_LIMIT = 500


@contextmanager
def recorded(*, by: Any, reason: str) -> Iterator[None]:
    """One transaction, and who and why for whatever it changes. `by`: None for the system.

    Only for rows of this app: pghistory puts the context in front of each statement, which a
    statement that the server has prepared (tools/prepared.py) does not bear.
    """
    with transaction.atomic(), pghistory.context(user=by.pk if by else None, reason=reason):
        yield


def change_tools(names: Sequence[str], *, by: Any, reason: str, **values: Any) -> list[str]:
    """Set the same values for these tools, all or none; the names of those that were changed.

    Whether `by` may is the caller's to ask (policy.may_set_tier).
    """
    if "tier" in values:
        values["is_tagged"] = True
    with recorded(by=by, reason=reason):
        rows = Tool.objects.select_for_update().filter(name__in=names).order_by("name")
        changed = [row for row in rows if _set(row, values)]
        for row in changed:
            row.updated_by = by
            row.save()
    return [row.name for row in changed]


def set_tier(names: Sequence[str], tier: Tier, *, by: Any, reason: str) -> list[str]:
    """Give these tools one tier; the names of those that had another."""
    return change_tools(names, by=by, reason=reason, tier=tier.value)


def _set(row: Tool, values: dict[str, Any]) -> bool:
    """Whether any of the values is new to the row."""
    is_new = any(getattr(row, name) != value for name, value in values.items())
    for name, value in values.items():
        setattr(row, name, value)
    return is_new
