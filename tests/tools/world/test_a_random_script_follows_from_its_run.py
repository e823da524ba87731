"""Soaks play scripts at random; a soak that found something must be able to play it again."""

import asyncio
from datetime import UTC, datetime

import pytest

from tests.tools.world.serving import StartProvider
from tools import registry
from tools.errors import BadArguments
from tools.world.provider_history import History
from tools.world.provider_script import End, pieces
from tools.world.random_script import CALLS, NAME, scenario_of
from tools.world.scenarios import Call, Cut

RUNS = [f"run_{number}" for number in range(300)]
CALLED = [
    step
    for run in RUNS
    for turn in scenario_of(run).turns
    for step in turn
    if isinstance(step, Call)
]


def test_the_same_run_has_the_same_script_and_others_have_another() -> None:
    assert scenario_of("run_1") == scenario_of("run_1")
    assert len({str(scenario_of(run)) for run in RUNS}) == len(RUNS)


@pytest.mark.django_db
def test_every_tool_comes_up_and_so_do_mistakes() -> None:
    tools = {call.tool for call in CALLED}
    assert set(CALLS) < tools
    assert {name for name in tools if registry.get(name) is None} == {"mail.burn"}
    assert 0 < sum(not _fits(call) for call in CALLED) < len(CALLED) / 10


def test_answers_break_off_in_every_way() -> None:
    ends = [turn[-1] for run in RUNS for turn in scenario_of(run).turns]
    assert {end.kind for end in ends if isinstance(end, Cut)} >= {"connection", "eof", "length"}


def test_every_turn_of_every_script_can_be_played() -> None:
    for run in RUNS:
        scenario = scenario_of(run)
        for turn in range(len(scenario.turns)):
            history = History(turn, (), ())
            played = list(pieces(scenario, history, tuple(CALLS), datetime.now(UTC), run))
            assert [type(piece) for piece in played].count(End) == 1


def test_the_provider_plays_it_by_the_run_that_asks(start_provider: StartProvider) -> None:
    provider = start_provider()

    async def ask() -> str:
        async with provider.stream(NAME) as stream:
            async for _event in stream:
                pass
            return stream.get().text or ""

    text = asyncio.run(ask())
    first = scenario_of("run_of_the_test").turns[0][0]
    assert text.startswith(getattr(first, "text", "…").strip())


def _fits(call: Call) -> bool:
    registered = registry.get(call.tool)
    if registered is None:
        return True
    try:
        registered.parse(call.args)
    except BadArguments:
        return False
    return True
