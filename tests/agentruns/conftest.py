"""An agent with tools of the tests' own, and steps to take its runs to where a test begins."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from agentruns.models import Agent
from tests.agentruns.outside import TOOLS, Outside, registered
from tests.agentruns.steps import Steps
from tests.pausing import Pauses, pausing
from tools import policy


@pytest.fixture
def outside() -> Iterator[Outside]:
    """The tests' tools are registered; what they do happens here."""
    with registered() as world:
        yield world


@pytest.fixture
def agent(transactional_db: None, outside: Outside) -> Agent:
    """May use every one of the tests' tools."""
    policy.sync()
    return Agent.objects.create(
        slug="tester", name="Tester", model="demo:none", tools=[*TOOLS, "test.unknown"]
    )


@pytest.fixture
def steps(agent: Agent, owner: User) -> Steps:
    """Takes a run of the owner's through the protocol, step by step."""
    return Steps(agent, owner)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pauses]:
    """Hold threads at named points."""
    with pausing(monkeypatch) as handler:
        yield handler
