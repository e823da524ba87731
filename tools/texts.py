"""Texts that others wrote, as people read them: cut where they are kept, and with nothing hidden.

A model or an outside system writes a text of any length and any signs. What a page shows of it is
cut once, when it is written down, so that nothing that draws a page has to fear its length; and
signs that cannot be seen, or that turn the text around them, are spelt out.
"""

import re
import unicodedata

# Characters that are kept of each column that people read, by its name.
LONGEST = {"summary": 300, "detail": 2_000, "failure_detail": 2_000, "note": 2_000}
LONGEST |= {"response": 32_000}
LONGEST_NAME = 200  # of a tool, and of an item
LONGEST_UNREAD = 2_000  # of arguments that could not be read

# Without an ink of their own, though Unicode does not class them with the signs of format: joiners
# and fillers of several scripts, variation selectors, tags, the blank of Braille.
_IGNORED = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x2065, 0x2065),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFFA0, 0xFFA0),
        (0xFFF0, 0xFFF8),
        (0x16FE4, 0x16FE4),
        (0x1D159, 0x1D159),
        (0xE0000, 0xE0FFF),
    )
    for code in range(first, last + 1)
)
# An emoji may have its colour chosen, and be joined to the next one: that is seen.
_EMOJI = "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_OF_EMOJI = {"\u200d", "\ufe0f"}
_BLANKS = re.compile(r"[^\S\u00a0]+")  # what keeps an amount and its currency together stays
_ASTRAY = re.compile(
    f"(?<![{_EMOJI}])\ufe0f|(?<![{_EMOJI}\ufe0f])\u200d|\u200d(?![{_EMOJI}])",
)


def is_unseen(sign: str) -> bool:
    """Whether a sign cannot be seen by itself, or turns the text around it. (Tab and line breaks
    are among them: who keeps lines apart leaves those out.)
    """
    return unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") or sign in _IGNORED


def spelt_out(text: str) -> str:
    """`text` with each sign that cannot be seen as “\\u202e”; of lines and tabs the usual ones
    stay, and so does what belongs to an emoji.
    """
    signs = {sign for sign in set(text) if not sign.isprintable() or sign in _IGNORED}
    odd = {sign for sign in signs if is_unseen(sign)} - {"\t", "\n", "\r"}
    if not odd:
        return text
    if odd & _OF_EMOJI:
        text = _ASTRAY.sub(lambda found: _escaped(found[0]), text)
    return text.translate({ord(sign): _escaped(sign) for sign in odd - _OF_EMOJI})


def without_unseen(text: str) -> str:
    """`text` less what cannot be seen; tabs and line breaks stay."""
    odd = {sign for sign in set(text) if is_unseen(sign)} - {"\t", "\n"}
    return text.translate(dict.fromkeys(map(ord, odd))) if odd else text


def cut(text: str, most: int) -> str:
    """`text`, with “…” where it was longer than `most` characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def line(text: str, most: int) -> str:
    """`text` on one line, cut, with nothing hidden in it."""
    return cut(spelt_out(cut(_BLANKS.sub(" ", text).strip(), most)), most)


def kept(column: str, value: object) -> object:
    """What a column keeps of a value: of the texts that people read, no more than its share."""
    most = LONGEST.get(column)
    return cut(value, most) if most and isinstance(value, str) else value


def _escaped(sign: str) -> str:
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"
