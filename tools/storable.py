"""What others wrote, as the database can keep it.

Models and outside systems send any character at all. Postgres keeps all but two kinds, and
no number that is not finite; a row that it refuses would be a fact that is lost.
"""

import math
import re
from typing import Any

LOST = "\ufffd"
_NOT_KEPT = re.compile("[\x00\ud800-\udfff]")


def storable(value: Any) -> Any:
    """`value`, in which each NUL and each half of a surrogate pair is a “�” (so that texts keep
    their length), and a number that is not finite is its name. Looks into dicts and lists.
    """
    match value:
        case str():
            return _NOT_KEPT.sub(LOST, value)
        case dict():
            return {storable(key): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
    return value


def is_storable(value: Any) -> bool:
    """Whether the database keeps `value` as it is."""
    match value:
        case str():
            return _NOT_KEPT.search(value) is None
        case dict():
            return all(is_storable(key) and is_storable(item) for key, item in value.items())
        case list() | tuple():
            return all(is_storable(item) for item in value)
        case float():
            return math.isfinite(value)
    return True
