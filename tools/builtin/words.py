"""How tools put what they were given into one plain line."""

from collections.abc import Sequence

from django.utils.translation import ngettext

from tools import texts

NAMED = 3
LONGEST = 60  # characters


def listed(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(names[:NAMED])
    more = len(names) - NAMED
    if more > 0:
        shown += ngettext(" and %(count)s more", " and %(count)s more", more) % {"count": more}
    return shown


def shortened(text: str) -> str:
    """The beginning of a text, in one line."""
    return texts.cut(" ".join(text.split()), LONGEST)
