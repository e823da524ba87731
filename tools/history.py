"""What became of a tool's policy: each change as the database kept it, in plain words."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.utils.translation import gettext as _

from tools.models import Tool

LIMIT = 50


@dataclass(frozen=True)
class Change:
    """One setting: what it is called, and what it was and became, in words."""

    label: str
    before: str
    after: str


@dataclass(frozen=True)
class Entry:
    """Who changed what, when and why. `by`: None for the system, or where nobody said it; no
    `changes` for the beginning.
    """

    at: datetime
    by: Any
    reason: str
    changes: list[Change]


def history_of(name: str) -> list[Entry]:
    """The tool's last LIMIT changes, newest first."""
    model: Any = apps.get_model("tools", "ToolEvent")
    events = model.objects.filter(pgh_obj=name).select_related("pgh_context").order_by("-pgh_id")
    found = list(events[: LIMIT + 1])
    people = get_user_model().objects.in_bulk({_told(event, "user") for event in found} - {None})
    groups = dict(Group.objects.values_list("pk", "name"))
    pairs = zip(found[:LIMIT], [*found[1:], None], strict=False)
    return [
        Entry(
            at=event.pgh_created_at,
            by=people.get(_told(event, "user")),
            reason=_told(event, "reason") or "",
            changes=_changes(before, event, groups) if before else [],
        )
        for event, before in pairs
    ]


def _told(event: Any, key: str) -> Any:
    return event.pgh_context.metadata.get(key) if event.pgh_context else None


def _changes(before: Any, after: Any, groups: dict[int, str]) -> list[Change]:
    kept = [field for field in Tool._meta.concrete_fields if hasattr(after, field.attname)]
    return [
        Change(
            str(field.verbose_name),
            _in_words(field, getattr(before, field.attname), groups),
            _in_words(field, getattr(after, field.attname), groups),
        )
        for field in kept
        if getattr(before, field.attname) != getattr(after, field.attname)
    ]


def _in_words(field: Any, value: Any, groups: dict[int, str]) -> str:
    if value is None or value == "":
        return "–"
    if field.is_relation:
        return groups.get(value, "–")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return str(dict(field.flatchoices).get(value, value))
