"""Where there are few places, nobody's many requests keep another's one waiting."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest

from agentruns.errors import TooBusy
from agentruns.turns import Asker, Turns

OMAR, ANA = Asker("192.0.2.1", "omar"), Asker("192.0.2.1", "ana")
AFAR = Asker("192.0.2.9", "")


def turns(places: int = 2, of_one: int = 1, queue: int = 100, patience: float = 5.0) -> Turns:
    return Turns(places, of_one, queue, patience)


def play(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 10))


async def served_in_order(of: Turns, asked: list[tuple[Asker, str]]) -> list[Asker]:
    """Who is served, one after the other, when all of them wait."""
    order: list[Asker] = []

    async def ask(asker: Asker, thing: str) -> None:
        async with of.turn(asker, thing):
            order.append(asker)

    await asyncio.gather(*(ask(*each) for each in asked))
    return order


async def all_wait() -> None:
    """Let the tasks that were made go as far as they get."""
    for _step in range(5):
        await asyncio.sleep(0)


def test_askers_take_turns_and_so_do_addresses() -> None:
    async def story() -> None:
        of = turns(places=1)
        for asker in (OMAR, ANA, AFAR):
            of.recognise(asker)
        async with of.turn(OMAR, "first"):
            asked = [*((OMAR, f"{n}") for n in range(50)), (ANA, "r"), (AFAR, "r")]
            waiting = asyncio.create_task(served_in_order(of, asked))
            await all_wait()
        assert (await waiting).index(ANA) < 3
        assert (await waiting).index(AFAR) < 3

    play(story())


def test_whoever_is_known_goes_before_made_up_ones_who_leave_half_of_the_places() -> None:
    async def story() -> None:
        of = turns(places=4)
        of.recognise(ANA)
        async with AsyncExitStack() as strangers:
            for number in range(2):
                await strangers.enter_async_context(of.turn(Asker("192.0.2.1", f"{number}"), "r"))
            third = asyncio.create_task(served_in_order(of, [(Asker("192.0.2.1", "x"), "r")]))
            await all_wait()
            async with of.turn(ANA, "r"):
                assert not third.done()
        assert len(await third) == 1

    play(story())


def test_of_one_thing_an_asker_has_one_turn_at_a_time_and_others_of_another() -> None:
    async def story() -> None:
        of = turns(places=8, of_one=4)
        of.recognise(ANA)
        async with of.turn(ANA, "locked"):
            again = asyncio.create_task(served_in_order(of, [(ANA, "locked")]))
            await all_wait()
            async with of.turn(ANA, "other"):
                assert not again.done()
        assert await again == [ANA]

    play(story())


def test_who_waits_too_long_or_asks_too_often_is_told_so_and_takes_no_place() -> None:
    async def story() -> None:
        of = turns(places=2, queue=1, patience=0.05)
        of.recognise(OMAR)
        async with of.turn(OMAR, "r"):
            waiting = asyncio.create_task(served_in_order(of, [(OMAR, "r")]))
            await all_wait()
            with pytest.raises(TooBusy):
                await served_in_order(of, [(OMAR, "r")])
            with pytest.raises(TooBusy):
                await waiting
        assert await served_in_order(of, [(OMAR, "r")]) == [OMAR]

    play(story())


def test_who_gives_up_takes_no_place() -> None:
    async def story() -> None:
        of = turns(places=1)
        async with of.turn(OMAR, "r"):
            waiting = asyncio.create_task(served_in_order(of, [(ANA, "r")]))
            await all_wait()
            waiting.cancel()
        assert await served_in_order(of, [(AFAR, "r")]) == [AFAR]

    play(story())
