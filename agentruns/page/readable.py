"""Data for people: arguments and receipts as labelled lines, without braces and quotes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

LONG = 70


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
        lines = [f"{_label(key)}: {_plain(item, depth + 1)}" for key, item in value.items()]
        return indent.join(lines)
    return str(value)
