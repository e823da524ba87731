"""The page of one tool: what it is, what became of its calls, and who changed its policy.

The ledger may have millions of calls: everything here is of the newest so many, by an index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agentruns import rights
from agentruns.admin import importedfacts
from agentruns.admin.columns import to_the_minute
from agentruns.admin.toolforms import declared_words
from agentruns.models import ToolCall
from agentruns.page.words import call_pill, name_of
from agentruns.speed import speed_of
from agentruns.states import CALL
from tools import registry
from tools.history import Entry, history_of
from tools.models import Tool
from tools.registry import RegisteredTool

COUNTED = 10_000  # calls, the newest
LISTED = 10
LATELY = timedelta(days=7)

# What is counted, by its column.
KINDS: dict[str, Q] = {
    "landed": Q(state="landed"),
    "failed": Q(state="failed"),
    "doubted": Q(doubted_at__isnull=False),
    "undone": Q(undo_state="undone"),
}


@dataclass(frozen=True)
class Tally:
    """How often, of the newest COUNTED calls, and in the last seven days."""

    label: str
    total: int
    lately: int


@dataclass(frozen=True)
class ToolPage:
    """`facts`: label and value. The tables are as unfold's component wants them."""

    facts: list[tuple[str, Any]]
    counts: list[Tally]
    counted: str
    calls: dict[str, Any]
    are_calls_shown: bool
    history: dict[str, Any]


def page_of(row: Tool, user: rights.Person) -> ToolPage:
    """Everything that the page shows beside the form. Single calls for those alone who may see all
    runs: whoever tags tools need not.
    """
    are_calls_shown = rights.sees_all(user)
    ended = ToolCall.objects.filter(tool=row.name, ended_at__isnull=False).order_by("-ended_at")
    open_calls = ToolCall.objects.filter(tool=row.name).exclude(state__in=CALL.terminal)
    counts, is_all = _counts(ended, open_calls)
    calls = _calls(ended, open_calls) if are_calls_shown else []
    return ToolPage(
        facts=_facts(row, registry.get(row.name)) + _speed(row.name),
        counts=counts,
        counted="" if is_all else _("Of its last %(n)s calls.") % {"n": f"{COUNTED:,}"},
        calls=_table([_("call"), _("state"), _("when"), _("run")], calls),
        are_calls_shown=are_calls_shown,
        history=_table([_("when"), _("who"), _("what"), _("why")], _history(history_of(row.name))),
    )


def _table(headers: Sequence[str], rows: list[list[Any]]) -> dict[str, Any]:
    return {"headers": headers, "rows": rows}


def _facts(row: Tool, item: RegisteredTool | None) -> list[tuple[str, Any]]:
    facts: list[tuple[str, Any]] = importedfacts.facts(row) or [
        (_("Declared in code"), declared_words(row)),
        (_("Comes from"), str(row.get_source_display())),
    ]
    if item is None:
        return facts
    return [
        *facts,
        (_("Makes a draft first"), _yes(item.has_prepare)),
        (_("Can be looked up when in doubt"), _yes(item.has_lookup)),
        (_("Can be undone"), _yes(item.has_compensate)),
        (_("What undo means"), item.undo_note or "–"),
        (
            _("Time limit in code"),
            _("%(n)s s") % {"n": f"{item.timeout:g}"},
        ),
    ]


def _yes(holds: bool) -> str:
    return _("yes") if holds else _("no")


def _counts(ended: QuerySet[ToolCall], open_calls: QuerySet[ToolCall]) -> tuple[list[Tally], bool]:
    """How often each kind; and whether that is of all calls that there ever were."""
    since = Q(ended_at__gte=now() - LATELY)
    wanted = {name: Count("pk", filter=q) for name, q in KINDS.items()}
    lately = {f"{name}_lately": Count("pk", filter=q & since) for name, q in KINDS.items()}
    found = ended[:COUNTED].aggregate(every=Count("pk"), **wanted, **lately)
    doubts = open_calls.filter(state="in_doubt").count()
    found["doubted"] += doubts
    found["doubted_lately"] += doubts
    labels = {
        "landed": _("Done"),
        "failed": _("Failed, no effect"),
        "doubted": _("Were in doubt"),
        "undone": _("Undone"),
    }
    counts = [Tally(labels[name], found[name], found[f"{name}_lately"]) for name in KINDS]
    return counts, found["every"] < COUNTED


def _speed(tool: str) -> list[tuple[str, str]]:
    """How long from the gate until it was sent, where that was measured."""
    speed = speed_of(tool)
    if speed is None:
        return []
    said = ngettext(
        "half within %(p50)s ms, 95 of 100 within %(p95)s ms (%(n)d call)",
        "half within %(p50)s ms, 95 of 100 within %(p95)s ms (%(n)d calls)",
        speed.calls,
    ) % {"p50": f"{speed.p50:.1f}", "p95": f"{speed.p95:.1f}", "n": speed.calls}
    return [(_("From the gate to the send"), said)]


def _calls(ended: QuerySet[ToolCall], open_calls: QuerySet[ToolCall]) -> list[list[Any]]:
    newest = [*ended.select_related("run")[:LISTED], *open_calls.order_by("-pk")[:LISTED]]
    newest.sort(key=lambda call: call.proposed_at, reverse=True)
    return [
        [
            call.in_words,
            call_pill(call).label,
            to_the_minute(call.proposed_at),
            format_html(
                importedfacts.LINK, reverse("run", args=[call.run_id]), f"…{call.run_id[-8:]}"
            ),
        ]
        for call in newest[:LISTED]
    ]


def _history(entries: list[Entry]) -> list[list[Any]]:
    return [
        [to_the_minute(entry.at), name_of(entry.by), _what(entry), entry.reason or "–"]
        for entry in entries
    ]


def _what(entry: Entry) -> Any:
    if not entry.changes:
        return _("as it was at the beginning")
    lines = ((change.label, change.before, change.after) for change in entry.changes)
    each = format_html_join("", "<div>{}: {} → <strong>{}</strong></div>", lines)
    return format_html("<div>{}</div>", each)
