"""An open page of a run: the live socket, as a browser speaks it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self

from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from agentruns.asgi import application
from agentruns.models import Run

PATIENCE = 10.0  # seconds
Story = Callable[[], Awaitable[None]]


class OpenPage:
    """`async with OpenPage(run, person)`: connected, unless `is_let_in` says otherwise."""

    def __init__(
        self,
        run: Run | str,
        person: User | None,
        *,
        query: str = "seq=0",
        origin: str = "http://localhost",
    ) -> None:
        self.path = f"/ws/runs/{run if isinstance(run, str) else run.pk}/"
        self.origin = origin
        self.person = person
        self.query = query
        self.client = Client()
        self.is_let_in = False
        self.html: dict[str, str] = {}
        self.seq = 0

    async def __aenter__(self) -> Self:
        scope = {
            "type": "websocket",
            "path": self.path,
            "query_string": self.query.encode(),
            "headers": [
                (b"cookie", await do(self._cookies)),
                (b"host", b"localhost"),
                (b"origin", self.origin.encode("latin-1")),
            ],
            "subprotocols": [],
        }
        self.socket = ApplicationCommunicator(application, scope)
        await self.socket.send_input({"type": "websocket.connect"})
        answer = await self.socket.receive_output(timeout=PATIENCE)
        self.is_let_in = answer["type"] == "websocket.accept"
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1000})
        # It ends by itself: a socket that has gone leaves nothing running.
        await asyncio.wait_for(asyncio.shield(self.socket.future), PATIENCE)

    def _cookies(self) -> bytes:
        if self.person is not None:
            self.client.force_login(self.person)
        found = (f"{name}={morsel.value}" for name, morsel in self.client.cookies.items())
        return "; ".join(found).encode()

    async def say(self, message: str | bytes) -> None:
        """Send a frame, as a page (or somebody who only says so) would."""
        kind = "bytes" if isinstance(message, bytes) else "text"
        await self.socket.send_input({"type": "websocket.receive", kind: message})

    async def hear(self, kind: str) -> dict[str, Any]:
        """The next message of a kind; states that come before it are taken in."""
        while True:
            frame = await self.socket.receive_output(timeout=PATIENCE)
            message = json.loads(frame["text"])
            if message["type"] == "state":
                if "answer" in message["html"]:
                    self.html = {n: h for n, h in self.html.items() if "output-" not in n}
                self.html |= message["html"]
                self.html = {n: h for n, h in self.html.items() if _is_shown(n, message)}
                self.seq = message["seq"]
            if message["type"] == kind:
                return dict(message)

    async def read_until(self, words: str) -> dict[str, Any]:
        """Take in states until the page says `words`; returns the last one."""
        while True:
            state = await self.hear("state")
            if words in "".join(self.html.values()):
                return state

    async def closed_with(self) -> int:
        """The code with which the server closes."""
        while True:
            message = await self.socket.receive_output(timeout=PATIENCE)
            if message["type"] == "websocket.close":
                return int(message["code"])


def _is_shown(name: str, message: dict[str, Any]) -> bool:
    return name.startswith("output-") or name in ["head", "stopbox", *message["order"]]


async def do(verb: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """A verb of the protocol, as another process would do it meanwhile."""
    return await database_sync_to_async(verb, thread_sensitive=False)(*args, **more)


def play(story: Story) -> None:
    """Run a story with open pages."""
    assert settings.CHANNEL_LAYERS  # a real Valkey carries the doorbells
    asyncio.run(story())  # type: ignore[arg-type]
