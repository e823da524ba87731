"""The model provider behind a real HTTP server, and a real pydantic-ai client in front of it."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import uvicorn
from pydantic_ai import ModelMessage, ModelRequest
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from starlette.applications import Starlette
from starlette.routing import Mount

from tools.world.provider import build_provider
from tools.world.provider_record import ModelRequest as Recorded
from tools.world.provider_record import model_requests
from tools.world.scenarios import Scenario, ScenarioAgent, Turn

DEADLINE = 10.0
TOOLS = ("mail.search", "email.send", "calendar.create_event", "chat.post_message")


@dataclass(frozen=True)
class RunningProvider:
    url: str
    world_dir: Path

    @asynccontextmanager
    async def stream(
        self,
        scenario: str,
        *,
        messages: list[ModelMessage] | None = None,
        tools: tuple[str, ...] = TOOLS,
    ) -> AsyncIterator[StreamedResponse]:
        """One request by pydantic-ai; its HTTP client is closed at the end."""
        model = OpenAIChatModel(
            scenario,
            provider=OpenAIProvider(base_url=self.url, api_key="demo"),
            profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True),
        )
        schema = {"type": "object", "properties": {}}
        offered = [ToolDefinition(name=name, parameters_json_schema=schema) for name in tools]
        history = messages or [ModelRequest.user_text_prompt("Go on.")]
        async with (
            model,
            model_request_stream(
                model,
                history,
                model_settings={"extra_headers": {"X-Agentruns-Run": "run_of_the_test"}},
                model_request_parameters=ModelRequestParameters(function_tools=offered),
            ) as stream,
        ):
            yield stream

    def begun(self) -> Recorded:
        """The last request, once it is on record."""
        return self._recorded(lambda request: True)

    def ended(self) -> Recorded:
        """The last request, once its end is on record."""
        return self._recorded(lambda request: request.end is not None)

    def _recorded(self, wanted: Callable[[Recorded], bool]) -> Recorded:
        give_up = time.monotonic() + DEADLINE
        while time.monotonic() < give_up:
            requests = model_requests(self.world_dir)
            if requests and wanted(requests[-1]):
                return requests[-1]
        raise AssertionError(f"not on record after {DEADLINE} s: {requests}")

    async def ended_soon(self) -> Recorded:
        """The same, while the event loop goes on."""
        return await asyncio.to_thread(self.ended)


class StartProvider(Protocol):
    """Starts a provider that plays these scenarios: those that ship, if none are given."""

    def __call__(
        self, scenarios: Mapping[str, Scenario] | None = None, *, pace: float = 0.0
    ) -> RunningProvider: ...


def script(name: str, *turns: Turn, pace: float = 1000.0) -> dict[str, Scenario]:
    """A scenario of one's own, as `build_provider` takes it."""
    agent = ScenarioAgent(name="Test", description="Test", tools=TOOLS)
    return {name: Scenario(name, name, "Go on.", agent, turns, pace=pace, listed=False)}


@contextmanager
def serving(
    world_dir: Path, scenarios: Mapping[str, Scenario] | None, pace: float
) -> Iterator[str]:
    """The provider on a free port; yields its base URL."""
    app = Starlette(
        routes=[Mount("/v1", app=build_provider(world_dir, pace=pace, script=scenarios))]
    )
    with listening(app) as url:
        yield f"{url}/v1"


@contextmanager
def listening(app: Starlette) -> Iterator[str]:
    """The app on a free port of this machine; yields its URL."""
    server = uvicorn.Server(
        uvicorn.Config(app, lifespan="off", ws="none", log_config=None, timeout_graceful_shutdown=1)
    )
    # Listening before the server runs: a client that comes early waits in the backlog.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(DEADLINE)
