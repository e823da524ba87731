"""Data for people: arguments and receipts as labelled lines, without braces and quotes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

LONG = 70

# What the built-in tools call their fields. Others are shown by their own name.
LABELS = {
    "attendees": gettext_lazy("Attendees"),
    "base": gettext_lazy("Base"),
    "body": gettext_lazy("Body"),
    "branch": gettext_lazy("Branch"),
    "channel": gettext_lazy("Channel"),
    "channels": gettext_lazy("Channels"),
    "end": gettext_lazy("End"),
    "files": gettext_lazy("Files"),
    "found": gettext_lazy("Found"),
    "limit": gettext_lazy("Limit"),
    "mails": gettext_lazy("Mails"),
    "message": gettext_lazy("Message"),
    "query": gettext_lazy("Query"),
    "start": gettext_lazy("Start"),
    "subject": gettext_lazy("Subject"),
    "text": gettext_lazy("Text"),
    "title": gettext_lazy("Title"),
    "to": gettext_lazy("To"),
}


@dataclass(frozen=True)
class Field:
    """One labelled value; a long one gets lines of its own."""

    label: str
    text: str

    @property
    def is_long(self) -> bool:
        return len(self.text) > LONG or "\n" in self.text


def fields_of(data: dict[str, Any], order: Iterable[str] = ()) -> list[Field]:
    """The entries of a JSON object as fields; nothing is left out.

    `order` names the keys that come first: the database keeps objects in an order of its own.
    """
    first = [key for key in order if key in data]
    keys = [*first, *(key for key in data if key not in first)]
    return [Field(_label(key), _plain(data[key])) for key in keys]


def _label(key: str) -> str:
    if key in LABELS:
        return str(LABELS[key])
    words = str(key).replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _plain(value: Any, depth: int = 0) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if value is None or value in ("", [], {}):
        return "–"
    if isinstance(value, list):
        if all(not isinstance(item, dict | list) for item in value):
            return ", ".join(_plain(item) for item in value)
        return "\n".join(f"• {_plain(item, depth + 1)}" for item in value)
    if isinstance(value, dict):
        indent = "\n" + "  " * depth
        # Keys further in may be data, such as the names of files: they stay exactly as they are.
        lines = [f"{key}: {_plain(item, depth + 1)}" for key, item in value.items()]
        return indent.join(lines)
    return str(value)
