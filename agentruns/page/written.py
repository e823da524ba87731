"""A foreign text as markup in which nothing of it is lost, hidden, or taken for something else.

What cannot be seen in a text, or not be told from something else, is named in an aside: an element
that no text can write, drawn as a box. Two different texts never look the same.
"""

import re
import unicodedata
from itertools import groupby

import httpx2
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tools.texts import is_unseen

ASIDE = '<i class="aside'  # how each begins: no text can write it
MOST_BLANKS = 16  # in a row that are drawn one by one
LINE_END = "↵"
_NAMES = {"\t": "tab"}
_HOST = r"""[^\s/?#:@<>"'()\[\],;\\]{1,253}"""
# Blanks that could be overlooked, line breaks that could hide what comes after them, and hosts.
_GAPS = r"(?P<lines>\n{3,}|\A\n+|\n+\Z)|(?P<blanks>^\x20+|\x20+$|\x20{2,})"
_HOSTS = rf"(?P<host>(?<=://){_HOST})|(?P<domain>(?<=@){_HOST})"
_ODDITIES = re.compile(f"{_GAPS}|{_HOSTS}", re.MULTILINE)


def written(text: str) -> SafeString:
    """`text`, for an element that keeps blanks and line breaks (`white-space: pre-wrap`)."""
    odd = _odd(text)
    pattern = _ODDITIES
    if odd:
        signs = "".join(map(re.escape, sorted(odd)))
        pattern = re.compile(f"{_GAPS}|(?P<signs>[{signs}]+)|{_HOSTS}", re.MULTILINE)
    parts, position = [], 0
    for found in pattern.finditer(text):
        parts += [escape(text[position : found.start()]), _drawn(found, odd)]
        position = found.end()
    return mark_safe("".join([*parts, escape(text[position:])]))  # noqa: S308  (escaped)


def aside(words: object, kind: str = "") -> SafeString:
    """Something that is said about a value, and is not in it."""
    return format_html('<i class="aside{}">{}</i>', kind, words)


def _odd(text: str) -> set[str]:
    """The signs of a text that have to be spelt out."""
    signs = set(text) - {" ", "\n"}
    accents = {sign for sign in signs if unicodedata.category(sign)[0] == "M"}
    odd = {sign for sign in signs if _is_unclear(sign)}
    if not unicodedata.is_normalized("NFC", text):
        # A letter and its accent, written one after the other, look like the one sign for both.
        odd |= accents | {sign for sign in signs if _stands_for_another(sign)}
    elif accents and re.search(f"[{''.join(map(re.escape, accents))}]{{3}}", text):
        odd |= accents  # piled up, they would be drawn over the lines above and below
    return odd


def _is_unclear(sign: str) -> bool:
    """Whether it cannot be seen, is a blank of another width, or has no form of its own."""
    return is_unseen(sign) or unicodedata.category(sign) in ("Zs", "Cn", "Co", "Cs")


def _stands_for_another(sign: str) -> bool:
    """A part of a Korean syllable, or a second code for the same sign."""
    return "\u1160" <= sign <= "\u11ff" or not unicodedata.is_normalized("NFC", sign)


def _drawn(found: re.Match[str], odd: set[str]) -> str:
    piece = found[0]
    match found.lastgroup:
        case "lines":
            return _lines(found)
        case "blanks" if len(piece) <= MOST_BLANKS:
            return aside("·" * len(piece), " is-blank")
        case "blanks":
            words = ngettext("%(n)s blank", "%(n)s blanks", len(piece))
            return aside(words % {"n": f"{len(piece):,}"})
        case "signs":
            return _spelt(piece)
    return _address(piece, odd, is_mail=found.lastgroup == "domain")


def _lines(found: re.Match[str]) -> str:
    """Empty lines by their number; the end of the last line by a sign."""
    is_first, is_last = not found.start(), found.end() == len(found.string)
    if is_last and not is_first and len(found[0]) == 1:
        return aside(LINE_END, " is-blank")  # most texts end so
    empty = len(found[0]) - (0 if is_first or is_last else 1)
    words = ngettext("%(n)s empty line", "%(n)s empty lines", empty) % {"n": f"{empty:,}"}
    return f"{'' if is_first else chr(10)}{aside(words)}{'' if is_last else chr(10)}"


def _spelt(signs: str) -> str:
    runs = [(sign, len(list(run))) for sign, run in groupby(signs)]
    names = [(_NAMES.get(sign) or f"U+{ord(sign):04X}", count) for sign, count in runs]
    return aside(" ".join(f"{name} × {n:,}" if n > 1 else name for name, n in names))


def _address(host: str, odd: set[str], *, is_mail: bool) -> str:
    """A host in the letters that it is written in, and as it goes over the wire, if they differ."""
    if host.isascii():
        return escape(host)
    seen = "".join(_spelt(sign) if sign in odd else escape(sign) for sign in host)
    is_name = is_mail and not re.search("[.。．｡]", host)  # “@somebody”
    return seen if is_name else seen + aside(_on_the_wire(host))


def _on_the_wire(host: str) -> str:
    try:
        return httpx2.URL(f"http://{host}").raw_host.decode()
    except (httpx2.InvalidURL, UnicodeError):
        return _("no valid address")
