"""What this process knows of imported tools, so that a page of many calls asks once for each.

Known too late, by FRESH seconds at most, is harmless: the gate compares revisions by the row.
"""

import time

from tools.registry import RegisteredTool

FRESH = 0.5  # seconds

_known: dict[str, tuple[float, RegisteredTool]] = {}


def recent(name: str) -> RegisteredTool | None:
    """What is known of it, if that is fresh."""
    seen_at, item = _known.get(name, (0.0, None))
    return item if time.monotonic() - seen_at < FRESH else None


def of_revision(name: str, revision: str) -> RegisteredTool | None:
    """What is known of it, if it still has this revision."""
    _seen_at, item = _known.get(name, (0.0, None))
    return item if item is not None and item.revision == revision else None


def keep(item: RegisteredTool) -> None:
    _known[item.name] = (time.monotonic(), item)


def forget() -> None:
    """What was known may be wrong: this process has just changed it."""
    _known.clear()
