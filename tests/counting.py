"""How much work something is, in steps: a measure that a busy machine does not change."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(work: Callable[[], Any]) -> int:
    """How many lines of Python `work` executes, each turn of a loop counted."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[int], Any], size: int) -> float:
    """How many times the steps for `size` it takes for twice as much; about 2 if it is linear."""
    work(size)  # what is done but once is done
    return steps_of(lambda: work(2 * size)) / steps_of(lambda: work(size))
