"""B13, B15: a closed connection ends the generation: in prose, in a call, in silence."""

import asyncio
from itertools import chain, repeat

import pytest
from pydantic_ai.exceptions import ModelAPIError

from tests.tools.world.serving import RunningProvider, StartProvider, script
from tools.world.provider_record import ModelRequest, model_requests
from tools.world.scenarios import Call, Pause, Say, Step

HOUR = Pause(3600.0)
LONG = "word " * 200_000
ONE_CALL = Call("email.send", {"body": "y" * 2_000_000})


async def hang_up_after_the_first_event(provider: RunningProvider) -> ModelRequest:
    async with provider.stream("long") as stream:
        async for _event in stream:
            break
        await stream.cancel()
        return await provider.ended_soon()


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((Say(LONG),), id="in prose"),
        pytest.param((Say("Hello. "), ONE_CALL), id="in a call"),
        pytest.param((Say("Hello. "), HOUR, Say("Later.")), id="in silence"),
    ],
)
def test_a_closed_connection_ends_the_generation(
    start_provider: StartProvider, steps: tuple[Step, ...]
) -> None:
    provider = start_provider(script("long", steps), pace=1.0)

    ended = asyncio.run(hang_up_after_the_first_event(provider))

    assert ended.end == "closed_by_client"
    # Another whole answer takes its time; the first one generates nothing meanwhile.
    other = start_provider(script("short", (Say("Hello. " * 50),)), pace=1.0)

    async def whole_answer() -> None:
        async with other.stream("short") as stream:
            async for _event in stream:
                pass

    asyncio.run(whole_answer())
    first, second = model_requests(provider.world_dir)
    assert first.token_times == ended.token_times
    assert first.ended_at is not None
    assert first.tokens_after(first.ended_at) == 0
    assert second.end == "complete"


def test_a_client_that_leaves_before_the_first_token_is_noticed(
    start_provider: StartProvider,
) -> None:
    provider = start_provider(script("late", (HOUR, Say("Hello."))), pace=1.0)

    async def leave() -> ModelRequest:
        async def wait_for_the_first_token() -> None:
            async with provider.stream("late"):
                pass

        waiting = asyncio.create_task(wait_for_the_first_token())
        await asyncio.to_thread(provider.begun)
        waiting.cancel()
        await asyncio.wait([waiting])
        return await provider.ended_soon()

    ended = asyncio.run(leave())

    assert (ended.end, ended.token_times) == ("closed_by_client", [])


def test_others_stream_on_when_one_hangs_up(start_provider: StartProvider) -> None:
    steps = tuple(chain.from_iterable(repeat((Say("word " * 20),), 10)))
    provider = start_provider(script("long", steps), pace=1.0)

    async def both() -> str | None:
        async with provider.stream("long") as kept, provider.stream("long") as dropped:
            await dropped.cancel()
            async for _event in kept:
                pass
            return kept.get().text

    assert asyncio.run(both()) == "word " * 200
    assert sorted(str(request.end) for request in model_requests(provider.world_dir)) == [
        "closed_by_client",
        "complete",
    ]


def test_cancelling_while_another_task_reads_ends_its_reading(
    start_provider: StartProvider,
) -> None:
    """The way in which Stop comes: the reader waits for a token, somebody else cancels."""
    provider = start_provider(script("long", (Say("Hello. "), HOUR, Say("Later."))), pace=1.0)

    async def stop_from_outside() -> tuple[str, ModelRequest]:
        async with provider.stream("long") as stream:
            began = asyncio.Event()

            async def read() -> None:
                async for _event in stream:
                    began.set()

            reading = asyncio.create_task(read())
            await began.wait()
            await stream.cancel()
            # pydantic-ai lets the broken read through; whoever cancelled knows why.
            with pytest.raises(ModelAPIError):
                await reading
            return stream.get().state, await provider.ended_soon()

    state, ended = asyncio.run(stop_from_outside())

    assert state == "interrupted"
    assert ended.end == "closed_by_client"
