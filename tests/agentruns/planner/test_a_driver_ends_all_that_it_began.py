"""A helper that misses its cancellation would keep a worker's thread for ever."""

import asyncio

from agentruns.cancellation import end_all


def test_a_cancellation_that_got_lost_is_repeated() -> None:
    """As in asyncio.wait_for before Python 3.12, if what it waits for is done that moment."""
    missed = []

    async def helper() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if missed:
                    raise
                missed.append("once")

    async def begin_and_end() -> asyncio.Task[None]:
        task = asyncio.create_task(helper())
        await asyncio.wait([task], timeout=0)
        await end_all([task])
        return task

    assert asyncio.run(begin_and_end()).cancelled()
    assert missed == ["once"]


def test_what_went_wrong_in_a_helper_is_nobody_elses_trouble() -> None:
    async def helper() -> None:
        raise OSError("Redis is away")

    async def begin_and_end() -> None:
        task = asyncio.create_task(helper())
        await asyncio.wait([task])
        await end_all([task])

    asyncio.run(begin_and_end())
