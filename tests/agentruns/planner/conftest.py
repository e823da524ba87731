"""A provider that plays a script of the test's own, and runs that are driven by hand."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from agentruns.models import Agent, Run
from agentruns.planner.driver import drive_turn
from tests.agentruns.steps import Steps
from tests.tools.world.serving import RunningProvider, script, serving
from tools import policy
from tools.world.scenarios import Turn

Play = Callable[..., RunningProvider]


@pytest.fixture
def play(tmp_path: Path, settings: Settings) -> Iterator[Play]:
    """Have the model of `steps` say this, at its own speed."""
    with ExitStack() as stack:

        def begin(*turns: Turn, pace: float = 1.0) -> RunningProvider:
            said = script("spoken", *turns)
            settings.MODEL_BASE_URL = stack.enter_context(serving(tmp_path, said, pace))
            return RunningProvider(settings.MODEL_BASE_URL, tmp_path)

        yield begin


@pytest.fixture
def steps(transactional_db: None, owner: User) -> Steps:
    """Runs of an agent whose model is the one that `play` starts."""
    policy.sync()
    agent = Agent.objects.create(
        slug="speaker", name="Speaker", model="demo:spoken", tools=["mail.search", "email.send"]
    )
    return Steps(agent, owner)


def drive(steps: Steps, run: Run) -> None:
    """What the think worker does with one message, to its end."""
    asyncio.run(drive_turn(steps.think(run)))
