"""A call with many effects, one by one: which of them are out there, and which are not."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from agentruns.models import CallItem, Run, ToolCall
from agentruns.protocol.items import keys_of
from tools import registry

OF_ITEMS = frozenset({"items", "of"})  # what a receipt says of its items, which are shown apart


@dataclass(frozen=True)
class Item:
    """One effect of a call; `at` is when it was known to be out, None if it is not."""

    name: str
    at: datetime | None


def items_by_call(run: Run, calls: Sequence[ToolCall]) -> dict[str, list[CallItem]]:
    """The receipts of each call that has any. No query for a run without such tools."""
    tools = {call.tool: registry.get(call.tool) for call in calls}
    if not any(tool and tool.has_items for tool in tools.values()):
        return {}
    found: dict[str, list[CallItem]] = {}
    for item in CallItem.objects.filter(call__run=run).order_by("position"):
        found.setdefault(item.call_id, []).append(item)
    return found


def items_of(call: ToolCall, landed: Sequence[CallItem]) -> list[Item]:
    """Every item that was asked for, in order; empty for a call that never began, or has none."""
    if call.gate_passed_at is None:
        return []
    at = {item.key: item.at for item in landed}
    keys = list(dict.fromkeys([*keys_of(call), *at]))
    return [Item(key, at.get(key)) for key in keys]


def count_items(items: Sequence[Item]) -> str:
    """“17 of 40 done”."""
    return _counted(sum(item.at is not None for item in items), len(items)) if items else ""


def in_part(call: ToolCall) -> str:
    """“17 of 40 done”, of a call that ended with some of its effects; "" for every other."""
    receipt = call.receipt or {}
    done, of = receipt.get("items"), receipt.get("of")
    if call.state != "landed" or not isinstance(done, dict) or not isinstance(of, int):
        return ""
    return _counted(len(done), of) if len(done) < of else ""


def _counted(done: int, of: int) -> str:
    return _("%(n)d of %(all)d done") % {"n": done, "all": of}
