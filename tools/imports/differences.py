"""What is different between two looks at the same tool, as data and in words."""

from typing import Any

from django.utils.translation import gettext as _

from tools.contract import Data
from tools.imports.offers import Offer

GONE: list[Data] = [{"what": "gone"}]
MOST_NAMES = 12


def between(before: Any, after: Offer) -> list[Data]:
    """The differences, each {"what": …} with the names of what came, went, or is another.
    `before` has the fields of an Offer (an ImportedTool, for one).
    """
    found = [
        {"what": what}
        for what in ("title", "description")
        if getattr(before, what) != getattr(after, what)
    ]
    was, now = before.schema, after.schema
    arguments = _compared(was.get("properties") or {}, now.get("properties") or {})
    needed = _compared(
        dict.fromkeys(was.get("required") or []), dict.fromkeys(now.get("required") or [])
    )
    if was != now:
        found.append({"what": "schema", **arguments})
    if any(needed.values()):
        found.append({"what": "required", **needed})
    if before.hints != after.hints:
        found.append({"what": "hints", **_compared(before.hints, after.hints)})
    if before.details != after.details:
        found.append({"what": "details"})
    # A text beyond what is kept is part of the revision, too.
    return found or [{"what": "description"}]


def _compared(before: Data, after: Data) -> Data:
    return {
        "added": sorted(set(after) - set(before))[:MOST_NAMES],
        "removed": sorted(set(before) - set(after))[:MOST_NAMES],
        "changed": sorted(key for key in before if key in after and before[key] != after[key])[
            :MOST_NAMES
        ],
    }


def in_words(changes: list[Data]) -> str:
    """One line for people: “Its arguments changed (new: bcc). Its hints changed.”"""
    return " ".join(_sentence(change) for change in changes)


def _sentence(change: Data) -> str:
    said = {
        "gone": _("Its source does not offer it any more."),
        "back": _("Its source offers it again."),
        "title": _("Its title changed."),
        "description": _("Its description changed."),
        "schema": _("Its arguments changed%(names)s."),
        "required": _("Which arguments it needs changed%(names)s."),
        "hints": _("What it says of its own risks changed%(names)s."),
        "details": _("How it is called, or what it answers with, changed."),
    }[change["what"]]
    return said % {"names": _names(change)} if "%(names)s" in said else said


def _names(change: Data) -> str:
    labels = {"added": _("new"), "removed": _("gone"), "changed": _("changed")}
    parts = [
        f"{label}: {', '.join(map(str, change[key]))}"
        for key, label in labels.items()
        if change.get(key)
    ]
    return f" ({'; '.join(parts)})" if parts else ""
