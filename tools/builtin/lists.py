"""What of a foreign list is ours: a server that does not know a filter ignores it, and answers with
what others have written. Only a record that carries our own key counts.
"""

from typing import Any

from django.utils.translation import gettext as _

from tools.contract import Data
from tools.errors import Unclear


class NotFiltered(ValueError):
    """The list holds others' records, and not (all of) ours. It may be the first page of many, so
    it proves nothing.
    """

    def __init__(self) -> None:
        super().__init__("the list was not filtered by our key, so it is no proof")


def records(found: Any) -> list[Data]:
    """The records of a list. Raises ValueError if it is none."""
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("the answer holds no list of records")
    return found


def with_key(found: Any, name: str, key: str) -> Data | None:
    """The record of a list that was asked for by our key, and has it as `name`; None if the list is
    empty. Raises NotFiltered, or ValueError for what is no list.
    """
    there = records(found)
    ours = next((each for each in there if each.get(name) == key), None)
    if ours is None and there:
        raise NotFiltered
    return ours


def must_be_ours(named: Any, key: str) -> None:
    """Raises Unclear where the answer to a call names another key than the call's. `named`: what
    stands in its place; None if the answer names none.
    """
    if named is not None and named != key:
        raise Unclear(
            _("The answer is about something else than this call, so it decides nothing.")
        )
