"""End asyncio tasks for certain."""

import asyncio
from typing import Any


async def end_all(tasks: list[asyncio.Task[Any]], *, apart: float = 0.1) -> None:
    """Cancel, and again every `apart` seconds until it is heard: before Python 3.12,
    asyncio.wait_for drops a cancellation that comes in the moment in which what it waits for is
    done. A library's own wait_for does so too. Exceptions of the tasks are dropped.
    """
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=apart)
    await asyncio.gather(*tasks, return_exceptions=True)
