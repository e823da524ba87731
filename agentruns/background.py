"""An event loop that lasts as long as the process, for what threads want done asynchronously.

`async_to_sync` opens a loop for each call, and with it a new connection to Redis: two to four
milliseconds at the end of every transaction that rings, a tenth of that with connections kept.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 1.0  # seconds beyond the limit, for a loop that is busy

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run(coroutine: Coroutine[Any, Any, T], *, limit: float) -> T:
    """Have it done, and wait for it. Raises TimeoutError after `limit` seconds, and what it raises.

    Not to be called from a coroutine.
    """
    return asyncio.run_coroutine_threadsafe(_within(coroutine, limit), _running()).result(
        limit + PATIENCE
    )


async def _within(coroutine: Coroutine[Any, Any, T], limit: float) -> T:
    async with asyncio.timeout(limit):
        return await coroutine


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="background", daemon=True).start()
        return _loop


def _forget() -> None:
    """A forked child has the loop's memory, and not its thread."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
