"""Model text as safe HTML, with each call as a chip where the model wrote it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

# A chip's place while Markdown is rendered: its index between two private-use characters.
OPEN, CLOSE = "\ue000", "\ue001"
_PLACE = re.compile(f"{OPEN}(\\d+){CLOSE}")
_PRIVATE = str.maketrans({OPEN: "\ufffd", CLOSE: "\ufffd"})
_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "a"),
    *("ul", "ol", "li", "h3", "h4", "h5", "h6"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}


@dataclass(frozen=True)
class Chip:
    """A call in the prose: where, what it is called, and the row that it links to."""

    offset: int
    label: str
    icon: str
    tone: str
    target: str
    title: str


def render(text: str, chips: Sequence[Chip] = ()) -> SafeString:
    """`text` as HTML that is safe to show, whatever the model wrote; chips at their offsets.

    A chip whose place got lost in the Markdown (inside a link's address, say) comes at the end.
    """
    html = _markdown(_with_places(text.translate(_PRIVATE), chips))
    drawn = [_drawn(chip) for chip in chips]
    shown: set[int] = set()

    def put(match: re.Match[str]) -> str:
        index = int(match[1])
        shown.add(index)
        return drawn[index]

    html = _PLACE.sub(put, html)
    lost = [chip for index, chip in enumerate(drawn) if index not in shown]
    if lost:
        html += "<p>" + " ".join(lost) + "</p>"
    return mark_safe(html)  # noqa: S308  (cleaned by nh3; chips are made by format_html)


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
        chip.title,
        chip.tone,
        chip.icon,
        chip.label,
    )


def _lower_headings(state: StateCore) -> None:
    """The page has its own h1 and h2: an answer's headings begin below them."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"


_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_parser.disable("image")  # an answer must not make a reader's browser fetch anything
_parser.core.ruler.push("lower_headings", _lower_headings)


@lru_cache(maxsize=512)
def _markdown(text: str) -> str:
    return nh3.clean(
        _parser.render(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
