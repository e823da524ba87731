"""The alarm that ends an executor's process when its task takes too long.

A tool that ignores its own time limit holds a process, and nothing else: its call is long since in
doubt. A call with many items is no such tool, so each of them winds the alarm anew.
"""

import math
import signal

from django.conf import settings

_is_set = False


def wind() -> None:
    """From now on; nobody handles it, so when it goes off the process ends."""
    global _is_set
    _is_set = True
    signal.alarm(settings.EXECUTOR_LIMIT)


def wind_again(seconds: float = 0.0) -> None:
    """Something was done: as long again, or `seconds` if that is longer, if there is an alarm in
    this process.
    """
    if _is_set:
        signal.alarm(max(settings.EXECUTOR_LIMIT, math.ceil(seconds)))


def clear() -> None:
    global _is_set
    _is_set = False
    signal.alarm(0)
