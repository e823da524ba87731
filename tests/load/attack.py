"""One account's worst, from outside: `python -m tests.load.attack JSON` until stdin is closed.

It speaks to its own model, too: one that writes megabytes, one that asks for a tool with a name of
two million letters, one that thinks for long, and the quiet one of whoever presses Stop.
"""

import asyncio
import json
import os
import sys
from asyncio import FIRST_COMPLETED
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from websockets.asyncio.client import connect

from agentruns.services.ports import LOOPBACK

PATIENCE = 60.0  # seconds
APART = 0.1  # seconds between two pieces of the long answer
PIECE = "A *paragraph* of `text` with [a link](https://example.com/) and **more**.\n\n" * 70
LONG_NAME = "n" * 2_000_000
READERS = 6
# What has to have come about before it counts as an attack.
FULL = ("start: 201", "start: 429", "page: 200", "sockets opened")

done: Counter[str] = Counter()


# --- The model ---------------------------------------------------------------------------------
async def answer(request: Request) -> StreamingResponse:
    asked = await request.json()
    return StreamingResponse(_events(asked["model"]), media_type="text/event-stream")


async def _events(model: str) -> AsyncIterator[str]:
    async for delta in _deltas(model):
        yield _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    reason = "tool_calls" if model == "name" else "stop"
    yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    yield "data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> str:
    base = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps(base | data)}\n\n"


async def _deltas(model: str) -> AsyncIterator[dict[str, Any]]:
    if model == "flood":
        for _ in range(int(5_000_000 / len(PIECE))):
            yield {"content": PIECE}
            await asyncio.sleep(APART)
    elif model == "name":
        call = {"index": 0, "id": "c", "type": "function"}
        yield {"tool_calls": [call | {"function": {"name": LONG_NAME, "arguments": "{}"}}]}
    elif model == "wait":
        await asyncio.sleep(600)
        yield {"content": "Done."}
    else:
        for _ in range(600):
            yield {"content": "word "}
            await asyncio.sleep(0.2)


# --- The account -------------------------------------------------------------------------------
class Attacker:
    def __init__(self, *, base_url: str, token: str, cookies: str, starts: int, sockets: int):
        headers = {"Authorization": f"Token {token}"}
        self._api = httpx2.AsyncClient(
            base_url=f"{base_url}/api/v1", headers=headers, timeout=PATIENCE
        )
        self._pages = httpx2.AsyncClient(
            base_url=base_url, headers={"Cookie": cookies}, timeout=PATIENCE
        )
        self._cookies, self._base_url = cookies, base_url
        self._starts, self._sockets = starts, sockets
        self._at_once = asyncio.Semaphore(20)

    async def attack(self) -> None:
        """All of it at once, for as long as it is let."""
        flood, name = await self._start("flood"), await self._start("name")
        assert flood is not None
        assert name is not None
        async with asyncio.TaskGroup() as all_:
            for run_id in (flood, name):
                for _ in range(READERS):
                    all_.create_task(self._read(run_id))
            for _ in range(self._sockets):
                all_.create_task(self._watch(flood))
            for _ in range(self._starts):
                all_.create_task(self._start("wait"))

    async def _start(self, agent: str) -> str | None:
        async with self._at_once:
            answer = await self._api.post("/runs", json={"agent": agent, "goal": "Go on."})
        done[f"start: {answer.status_code}"] += 1
        return str(answer.json()["id"]) if answer.status_code == 201 else None

    async def _read(self, run_id: str) -> None:
        while True:
            with suppress(httpx2.TransportError):
                page = await self._pages.get(f"/runs/{run_id}/")
                done[f"page: {page.status_code}"] += 1
                done["bytes of pages"] += len(page.content)
            await asyncio.sleep(0)

    async def _watch(self, run_id: str) -> None:
        url = f"{self._base_url.replace('http', 'ws')}/ws/runs/{run_id}/"
        more: dict[str, Any] = {
            "origin": self._base_url,
            "max_size": None,
            "open_timeout": PATIENCE,
        }
        while True:
            with suppress(Exception):  # closed, refused, too slow: it comes again
                async with connect(url, additional_headers={"Cookie": self._cookies}, **more) as s:
                    done["sockets opened"] += 1
                    async for message in s:
                        done["bytes of sockets"] += len(message)
            await asyncio.sleep(1)


async def _is_full() -> None:
    while not all(map(done.get, FULL)):  # noqa: ASYNC110  (counted in many places)
        await asyncio.sleep(0.1)


async def main(port: int, **account: Any) -> None:
    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, host=LOOPBACK, port=port, log_level="critical"))
    serving = asyncio.create_task(server.serve())
    attacker = Attacker(**account)
    until_told = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    attacking = asyncio.create_task(attacker.attack())
    await asyncio.wait((asyncio.create_task(_is_full()), attacking), return_when=FIRST_COMPLETED)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.wait((until_told, attacking), return_when=FIRST_COMPLETED)
    failed = attacking.exception() if attacking.done() else None
    sys.stdout.write(json.dumps(done | ({"failed": repr(failed)} if failed else {})) + "\n")
    sys.stdout.flush()
    serving.cancel()
    os._exit(0)  # with whatever is still open


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
