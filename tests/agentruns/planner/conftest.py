"""A provider that plays a script of the test's own, and runs that are driven by hand."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import ModelRequest
from pydantic_ai.tools import ToolDefinition
from pytest_django.fixtures import Settings

from agentruns.models import Agent, Run
from agentruns.planner import stream
from agentruns.planner.driver import drive_turn
from agentruns.planner.history import wire_name
from agentruns.planner.providers import model_of
from agentruns.planner.stream import Event
from tests.agentruns.outside import TOOLS, Outside
from tests.agentruns.planner.wires import FORMATS, Answer, Provider, Said, providing
from tests.agentruns.steps import Steps, now
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


@dataclass
class Speaker:
    """An agent that may use every one of the tests' tools, and whose model says what it is told."""

    steps: Steps
    provider: Provider
    settings: Settings
    env: pytest.MonkeyPatch

    def start(self, form: str, answer: Answer) -> Run:
        """A run of a model that is spoken to in this format, and answers this next."""
        Agent.objects.filter(pk=self.steps.agent.pk).update(model=self._named(form))
        self.provider.answers = [answer]
        return self.steps.start()

    def listen(self, form: str, answers: list[Answer]) -> list[list[Event | Exception]]:
        """Of each answer the events, and the error that was its end, without a run."""
        name = self._named(form)
        self.provider.answers = list(answers)
        tools = [ToolDefinition(name=wire_name(tool)) for tool in TOOLS]
        request = [ModelRequest.user_text_prompt("Go on.")]

        async def listen() -> list[list[Event | Exception]]:
            heard: list[list[Event | Exception]] = []
            async with model_of(name) as model:
                for _answer in answers:
                    heard.append([])
                    try:
                        async for event in stream.Answer(model, request, tools, "run").events():
                            heard[-1].append(event)
                    except AgentRunError as error:
                        heard[-1].append(error)
            return heard

        return asyncio.run(listen())

    def _named(self, form: str) -> str:
        """The name of a model that is spoken to in this format, at our provider."""
        chosen = FORMATS[form]
        self.settings.MODEL_BASE_URL = f"{self.provider.url}/v1"
        for name, value in chosen.env(self.provider.url).items():
            self.env.setenv(name, value)
        return chosen.model

    def hear(self, form: str, answer: Answer) -> Run:
        """The same, once that answer has ended, in whatever way."""
        run = self.start(form, answer)
        drive(self.steps, run)
        return now(run)

    def say(self, form: str, *said: Said) -> Answer:
        """The answer on the wire."""
        return FORMATS[form].write(list(said))


@pytest.fixture
def speaker(
    transactional_db: None,
    outside: Outside,
    owner: User,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Speaker]:
    policy.sync()
    agent = Agent.objects.create(slug="wired", name="Wired", model="demo:any", tools=[*TOOLS])
    with providing() as provider:
        yield Speaker(Steps(agent, owner), provider, settings, monkeypatch)


def written(run: Run) -> list[tuple[str, str, object]]:
    """Every call that the ledger has of a run: its tool, its state, what it is about."""
    calls = run.calls.order_by("number")
    return [(call.tool, call.state, call.args.get("what", call.args)) for call in calls]
