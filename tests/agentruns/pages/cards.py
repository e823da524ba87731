"""Reads a card back: from nothing but what a browser shows of it, the values that it was drawn of.

What can be read back in one way only cannot look like anything else.
"""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

WORDS = {"nothing": None, "yes": True, "no": False, "empty list": [], "no entries": {}}
EMPTY = "empty text"
_LINES = re.compile(r"([\d,]+) empty lines?\Z")
_BLANKS = re.compile(r"([\d,]+) blanks?\Z")
_SIGN = re.compile(r"(tab|U\+([0-9A-F]{4,6}))(?: × ([\d,]+))?(?: |\Z)")


@dataclass
class Element:
    """An element of the page, with what is in it: elements, and text."""

    tag: str
    kind: str = ""
    inside: list["Element | str"] = field(default_factory=list)

    @property
    def elements(self) -> list["Element"]:
        return [each for each in self.inside if isinstance(each, Element)]

    @property
    def text(self) -> str:
        return "".join(each if isinstance(each, str) else each.text for each in self.inside)

    def all(self, tag: str) -> list["Element"]:
        found = [inner for each in self.elements for inner in each.all(tag)]
        return [each for each in self.elements if each.tag == tag] + found


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("root")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attributes).get("class") or "")
        self.open[-1].inside.append(element)
        self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def parsed(html: str) -> Element:
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.open == [parser.root]
    return parser.root


def read(html: str) -> Any:
    """The arguments that a card shows, by the names of their fields."""
    (card,) = parsed(html).elements
    return _fields(card)


def _fields(card: Element) -> dict[str, Any]:
    assert (card.tag, card.kind) == ("dl", "fields")
    found = {}
    for entry in card.elements:
        title, value = entry.elements
        assert (entry.tag, title.tag, value.tag) == ("div", "dt", "dd")
        found[_name(title)] = _value(value)
    assert len(found) == len(card.elements)
    return found


def _name(title: Element) -> str:
    if not title.elements:
        return title.text[:1].lower() + title.text[1:].replace(" ", "_")
    (code,) = title.elements
    assert code.tag == "code"
    return _text(code.inside)


def _value(place: Element) -> Any:
    (value,) = place.elements
    match value.tag:
        case "dl":
            return _fields(value)
        case "ol":
            return [_value(item) for item in value.elements]
        case "span":
            return json.loads(value.text)
        case "i" if value.text != EMPTY:
            return WORDS[value.text]
        case "i":
            return ""
    assert value.tag == "div"
    return _text(value.inside)


def _text(inside: list[Element | str]) -> str:
    """The text of which this was made; asides say what cannot be seen in it."""
    if len(inside) == 1 and isinstance(inside[0], Element) and inside[0].text == EMPTY:
        return ""
    return "".join(
        each if isinstance(each, str) else _meant(each, is_alone=len(inside) == 1)
        for each in inside
    )


def _meant(aside: Element, *, is_alone: bool) -> str:
    assert aside.tag == "i"
    words = aside.text
    if aside.kind == "aside is-blank":
        assert words == "↵" or set(words) == {"·"}
        return "\n" if words == "↵" else " " * len(words)
    if found := _LINES.match(words):
        # Line breaks around it stand for themselves.
        return "\n" * (_number(found[1]) - (not is_alone))
    if found := _BLANKS.match(words):
        return " " * _number(found[1])
    if _SIGN.match(words):
        signs = [
            ("\t" if name == "tab" else chr(int(code, 16))) * _number(count or "1")
            for name, code, count in _SIGN.findall(words)
        ]
        return "".join(signs)
    return ""  # how a host is written on the wire, or that this is text


def _number(figures: str) -> int:
    return int(figures.replace(",", ""))
