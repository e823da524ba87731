"""Model text as safe HTML, with each call as a chip where the model wrote it.

Drawn in pieces of a few blocks each (paragraphs, lists, tables). A text only grows at its end while
it is written, so only its last piece is drawn anew each time; what was drawn is kept, bounded by
the memory that it takes.
"""

import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import nh3
from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from tools.texts import spelt_out

PIECE = 2000  # characters of a text after which a new piece begins with the next block

# A chip's place while Markdown is rendered: its index between two private-use characters.
OPEN, CLOSE = "\ue000", "\ue001"
_PLACE = re.compile(f"{OPEN}(\\d+){CLOSE}")
_PRIVATE = str.maketrans({OPEN: "\ufffd", CLOSE: "\ufffd"})
_LINE_END = re.compile(r"\r\n?")
_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "a"),
    *("ul", "ol", "li", "h3", "h4", "h5", "h6"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}

References = dict[str, tuple[str, str]]  # what a link may be called elsewhere: address and title


@dataclass(frozen=True)
class Chip:
    """A call in the prose: where, what it is called, and the row that it links to."""

    offset: int
    label: str
    icon: str
    tone: str
    target: str
    title: str


@dataclass(frozen=True)
class Piece:
    """Some blocks of a text, drawn; and what they say of links that others of the text name."""

    source: str
    html: str
    references: References = field(default_factory=dict)


@dataclass(frozen=True)
class Drawn:
    """A text as it was when it was last drawn."""

    pieces: tuple[Piece, ...] = ()

    @property
    def references(self) -> References:
        return _all_references(self.pieces)

    @property
    def size(self) -> int:
        """Bytes, about."""
        return sum(sys.getsizeof(p.source) + sys.getsizeof(p.html) + 200 for p in self.pieces)


class Kept:
    """The texts that were drawn last, up to so many bytes."""

    def __init__(self) -> None:
        self._texts: OrderedDict[Hashable, Drawn] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0

    def get(self, key: Hashable) -> Drawn:
        with self._lock:
            if key in self._texts:
                self._texts.move_to_end(key)
            return self._texts.get(key, Drawn())

    def put(self, key: Hashable, drawn: Drawn) -> None:
        """Keep it, and drop what has not been asked for the longest."""
        size = drawn.size
        with self._lock:
            if (before := self._texts.pop(key, None)) is not None:
                self.size -= before.size
            if size > settings.DRAWN_TEXT_BYTES:
                return
            self._texts[key] = drawn
            self.size += size
            while self.size > settings.DRAWN_TEXT_BYTES:
                self.size -= self._texts.popitem(last=False)[1].size

    def clear(self) -> None:
        with self._lock:
            self._texts.clear()
            self.size = 0


kept = Kept()


def render(text: str, chips: Sequence[Chip] = ()) -> SafeString:
    """`text` as HTML that is safe to show, whatever the model wrote; chips at their offsets.

    A chip whose place got lost in the Markdown (inside a link's address, say) comes at the end.
    """
    html = "".join(pieces(text, chips))
    return mark_safe(html)  # noqa: S308  (cleaned by nh3; chips are made by format_html)


def pieces(text: str, chips: Sequence[Chip] = (), *, key: Hashable = None) -> list[str]:
    """The same in pieces. `key`: of which text this is an earlier or a later state."""
    source = _LINE_END.sub("\n", _with_places(text.translate(_PRIVATE), chips))
    before = Drawn() if key is None else kept.get(key)
    drawn = _grown(before, source)
    if key is not None and drawn is not before:
        kept.put(key, drawn)
    labels = [_drawn(chip) for chip in chips]
    shown: set[int] = set()

    def put(match: re.Match[str]) -> str:
        index = int(match[1])
        shown.add(index)
        return labels[index]

    found = [_PLACE.sub(put, piece.html) if chips else piece.html for piece in drawn.pieces]
    lost = [label for index, label in enumerate(labels) if index not in shown]
    if lost:
        found = [*found[:-1], "".join(found[-1:]) + "<p>" + " ".join(lost) + "</p>"]
    return found


def _grown(before: Drawn, source: str) -> Drawn:
    """`source` drawn, with what is still good of `before`."""
    still_good, at = [], 0
    for piece in before.pieces:
        end = at + len(piece.source)
        is_last = piece is before.pieces[-1]
        if not source.startswith(piece.source, at) or (is_last and end < len(source)):
            break
        still_good.append(piece)
        at = end
    if at == len(source) and len(still_good) == len(before.pieces) and still_good:
        return before
    if at == len(source) and still_good:  # it became shorter: its end is not settled any more
        at -= len(still_good.pop().source)
    known = _all_references(still_good)
    new = list(_parse(source[at:], known))
    if still_good and _all_references([*still_good, *new]) != before.references:
        return Drawn(tuple(_parse(source, {})))  # what a link points to was written after it
    return Drawn((*still_good, *new))


def _parse(source: str, known: References) -> Iterator[Piece]:
    """`source` in pieces; what is `known` of links is taken as it is."""
    env: dict[str, Any] = {
        "references": {name: {"href": h, "title": t} for name, (h, t) in known.items()}
    }
    tokens = _parser.parse(source, env)
    lines = source.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    said = [
        (starts[at["map"][0]], name, (at["href"], at["title"]))
        for name, at in env["references"].items()
        if "map" in at
    ]

    def piece(start: int, end: int, blocks: list[Token]) -> Piece:
        references = {name: leads for at, name, leads in said if start <= at < end}
        return Piece(source[start:end], _html(blocks, env), references)

    start, waiting = 0, list[Token]()
    for block in _blocks(tokens):
        line = block[0].map[0] if block[0].map else 0
        begins = starts[line]
        if begins - start >= PIECE and _is_settled(lines, line):
            yield piece(start, begins, waiting)
            start, waiting = begins, []
        waiting += block
    yield piece(start, len(source), waiting)


def _is_settled(lines: list[str], line: int) -> bool:
    """Whether what comes before the block that begins in this line stays as it is, whatever is
    written after it: a blank line is between them, and this one is written to its end.
    """
    return line > 0 and not lines[line - 1].strip() and line < len(lines) - 1


def _blocks(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each block that is in no other."""
    block: list[Token] = []
    for token in tokens:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def _all_references(pieces: Sequence[Piece]) -> References:
    """The first that says where a name leads is right."""
    return {name: said for piece in reversed(pieces) for name, said in piece.references.items()}


def _html(tokens: list[Token], env: dict[str, Any]) -> str:
    cleaned = nh3.clean(
        _parser.renderer.render(tokens, _parser.options, env),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return spelt_out(cleaned)


def _with_places(text: str, chips: Sequence[Chip]) -> str:
    parts, position = [], 0
    for index, chip in enumerate(chips):
        parts += [text[position : chip.offset], f"{OPEN}{index}{CLOSE}"]
        position = max(position, chip.offset)
    return "".join([*parts, text[position:]])


def _drawn(chip: Chip) -> str:
    return format_html(
        '<a class="emit" href="#{}" title="{}"><span class="ico is-{}" aria-hidden="true">{}</span>'
        "{}</a>",
        chip.target,
        spelt_out(chip.title),
        chip.tone,
        chip.icon,
        spelt_out(chip.label),
    )


def _lower_headings(state: StateCore) -> None:
    """The page has its own h1 and h2: an answer's headings begin below them."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"


_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_parser.disable("image")  # an answer must not make a reader's browser fetch anything
_parser.core.ruler.push("lower_headings", _lower_headings)
