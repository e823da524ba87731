"""Data for people: arguments and receipts as labelled values that are never taken for others.

What a person approves is what they see: two different sets of arguments never look the same.
Texts look like texts; fields, lists and what is no text are told apart by the markup around them,
which no text can write.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agentruns.page.written import aside, written

LONG = 70
MOST_CHARACTERS, MOST_ITEMS = 20_000, 200  # of a value that nobody is asked to approve

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
# Names that a label is made of so that no two have the same one.
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?\Z")
_WORDS = ("true", "false", "yes", "no", "null", "none")


@dataclass(frozen=True)
class Field:
    """One labelled value, as it is in the data."""

    name: str
    value: Any
    label: str = ""


def fields_of(data: dict[str, Any], order: Iterable[str] = ()) -> list[Field]:
    """The entries of a JSON object as fields; nothing is left out.

    `order` names the keys that come first: the database keeps objects in an order of its own.
    """
    first = [key for key in order if key in data]
    keys = [*first, *(key for key in data if key not in first)]
    return [Field(key, data[key], _label(key)) for key in keys]


def drawn(entries: Iterable[Field], *, is_whole: bool = True) -> SafeString:
    """Labelled values as a list of descriptions. Not `is_whole`: what is very long ends in how
    much more there is.
    """
    entries = list(entries)
    shown = entries if is_whole else entries[:MOST_ITEMS]
    rows = [(_title(each), *_value(each.value, is_whole)) for each in shown]
    if more := len(entries) - len(shown):
        rows.append((aside("…"), aside(_more(more)), False))
    return format_html(
        '<dl class="fields">{}</dl>',
        format_html_join(
            "",
            '<div class="entry{}"><dt>{}</dt><dd>{}</dd></div>',
            ((" is-long" if is_long else "", title, value) for title, value, is_long in rows),
        ),
    )


def _label(key: str) -> str:
    """A word of ours for a name; "" for one that is shown as it is."""
    if key in LABELS:
        return str(LABELS[key])
    words = key.replace("_", " ")
    return words[:1].upper() + words[1:] if _NAME.match(key) else ""


def _title(field: Field) -> SafeString:
    if field.label:
        return format_html("{}", field.label)
    return format_html("<code>{}</code>", written(field.name) if field.name else _empty())


def _value(value: Any, is_whole: bool) -> tuple[SafeString, bool]:
    """A value as markup, and whether it wants lines of its own."""
    if isinstance(value, str):
        return _text(value, is_whole)
    if isinstance(value, list) and value:
        return _list(value, is_whole), True
    if isinstance(value, dict) and value:
        # Names further in may be data, such as the names of files: they stay exactly as they are.
        entries = [Field(str(key), item) for key, item in value.items()]
        return drawn(entries, is_whole=is_whole), True
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_html('<span class="value">{}</span>', json.dumps(value)), False
    return aside(_in_words(value)), False


def _text(text: str, is_whole: bool) -> tuple[SafeString, bool]:
    if not text:
        return _empty(), False
    shown = text if is_whole else text[:MOST_CHARACTERS]
    html = written(shown)
    if more := len(text) - len(shown):
        words = ngettext("… %(n)s more character", "… %(n)s more characters", more)
        html += aside(words % {"n": f"{more:,}"})
    if _could_be_no_text(text):
        html += aside(_("text"))
    is_long = len(text) > LONG or "\n" in text
    lines = " is-lines" if is_long else ""
    return format_html('<div class="value{}">{}</div>', lines, html), is_long


def _list(items: list[Any], is_whole: bool) -> SafeString:
    shown = items if is_whole else items[:MOST_ITEMS]
    rows = [(_value(item, is_whole)[0],) for item in shown]
    if more := len(items) - len(shown):
        rows.append((aside(_more(more)),))
    return format_html('<ol class="values">{}</ol>', format_html_join("", "<li>{}</li>", rows))


def _more(count: int) -> str:
    return ngettext("… %(n)s more", "… %(n)s more", count) % {"n": f"{count:,}"}


def _could_be_no_text(text: str) -> bool:
    """Whether it reads like a number, or like the word for what is no text."""
    if len(text) > LONG:
        return bool(_NUMBER.match(text))
    words = {*_WORDS, *map(_in_words, (None, True, False, [], {}))}
    return bool(_NUMBER.match(text)) or text.strip().casefold() in words


def _in_words(value: Any) -> str:
    """What is no text and no number, and has nothing in it."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if value is None:
        return _("nothing")
    return _("empty list") if isinstance(value, list) else _("no entries")


def _empty() -> SafeString:
    return aside(_("empty text"))
