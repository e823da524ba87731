"""The demo's model provider: an OpenAI-compatible server that plays scenarios, without a key.

A request's `model` names the scenario, and the model's turns so far in its messages say where
in the script it is. Everything else is as at a real provider: tokens come one by one, prose and
tool calls interleave, a history with a hole is refused, and a closed connection ends the
generation at once.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tools.world import random_script, scenarios
from tools.world.provider_history import BadHistory, History, read_history
from tools.world.provider_record import RequestLog
from tools.world.provider_script import CallArgs, CallStart, End, Piece, Text, pieces
from tools.world.scenarios import Pause, Scenario

RUN_HEADER = "x-agentruns-run"


def build_provider(
    world_dir: Path,
    *,
    pace: float | None = None,
    script: Mapping[str, Scenario] | None = None,
) -> Starlette:
    """The provider as an ASGI app, to be mounted at /v1.

    Its record goes to `world_dir`. `pace` multiplies every pause (1 is as written, 0 is no
    pause; default: settings.MODEL_PACE); `script` replaces the scenarios that ship.
    """
    world_dir.mkdir(parents=True, exist_ok=True)
    door = _Door(
        world_dir=world_dir,
        pace=settings.MODEL_PACE if pace is None else pace,
        script=scenarios.load_all() if script is None else script,
    )
    return Starlette(
        routes=[
            Route("/chat/completions", door.complete, methods=["POST"]),
            Route("/models", door.models, methods=["GET"]),
        ]
    )


@dataclass(frozen=True)
class _Door:
    world_dir: Path
    pace: float
    script: Mapping[str, Scenario]

    async def models(self, request: Request) -> Response:
        """GET /models: each scenario is a model."""
        data = [{"id": name, "object": "model", "owned_by": "demo"} for name in self.script]
        return JSONResponse({"object": "list", "data": data})

    async def complete(self, request: Request) -> Response:
        """POST /chat/completions, streamed."""
        try:
            body = json.loads(await request.body())
        except ValueError:
            return _refusal(400, "The request body is not JSON.")
        if not isinstance(body, dict) or body.get("stream") is not True:
            return _refusal(400, "This provider only streams: send 'stream': true.", "stream")
        model, run = str(body.get("model")), request.headers.get(RUN_HEADER, "")
        scenario = self._scenario(model, run)
        if scenario is None:
            known = ", ".join(self.script)
            message = f"The model '{model}' does not exist; known: {known}."
            return _refusal(404, message, "model", code="model_not_found")
        try:
            history = read_history(body.get("messages"))
        except BadHistory as error:
            self._log(request, model, turn=-1).end("refused")
            return _refusal(400, str(error), error.param)
        log = self._log(request, model, history.turn)
        return _Stream(self._generation(scenario, body, history, run), log)

    def _scenario(self, model: str, run: str) -> Scenario | None:
        """The scenario that this model plays in this run; None if there is no such model."""
        if model == random_script.NAME:
            return random_script.scenario_of(run)
        return self.script.get(model)

    def _log(self, request: Request, model: str, turn: int) -> RequestLog:
        run = request.headers.get(RUN_HEADER)
        return RequestLog(self.world_dir, scenario=model, turn=turn, run=run)

    def _generation(
        self, scenario: Scenario, body: dict[str, Any], history: History, run: str
    ) -> "_Generation":
        options = body.get("stream_options") or {}
        now = datetime.now().astimezone()
        return _Generation(
            scenario=scenario,
            script=list(pieces(scenario, history, _offered(body), now, run)),
            seconds_per_token=self.pace / scenario.pace,
            pace=self.pace,
            prompt_tokens=len(json.dumps(body["messages"])) // 4,
            final_usage=bool(options.get("include_usage")),
            running_usage=bool(options.get("continuous_usage_stats")),
        )


@dataclass(frozen=True)
class _Generation:
    """One answer: its script, and what the client wants to know of its cost."""

    scenario: Scenario
    script: list[Piece]
    seconds_per_token: float
    pace: float
    prompt_tokens: int
    final_usage: bool
    running_usage: bool

    async def events(self, log: RequestLog) -> AsyncIterator[bytes]:
        """Server-sent events, each when its time has come; a token is logged before it leaves."""
        head = {
            "id": f"chatcmpl-{log.request}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.scenario.name,
        }
        due = time.monotonic()
        for piece in self.script:
            if isinstance(piece, Pause):
                due += piece.seconds * self.pace
                continue
            # Paced from the start, not from the last token: a slow reader does not slow the model.
            due += 0 if isinstance(piece, End) else self.seconds_per_token
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if not isinstance(piece, End):
                log.token()
            elif piece.reason is None:
                return
            delta = _delta(piece, first=log.tokens == 1)
            reason = piece.reason if isinstance(piece, End) else None
            chunk = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            yield _event(chunk | (self._usage(log) if self.running_usage else {}))
        if self.final_usage:
            yield _event({**head, "choices": [], **self._usage(log)})
        yield b"data: [DONE]\n\n"

    @property
    def drops_connection(self) -> bool:
        end = self.script[-1]
        return isinstance(end, End) and end.drops_connection

    @property
    def is_cut(self) -> bool:
        end = self.script[-1]
        return isinstance(end, End) and end.reason is None

    def _usage(self, log: RequestLog) -> dict[str, Any]:
        return {
            "usage": {
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": log.tokens,
                "total_tokens": self.prompt_tokens + log.tokens,
            }
        }


class _Stream(Response):
    """Sends a generation, and listens meanwhile: who hangs up ends it, even in a pause."""

    media_type = "text/event-stream"

    def __init__(self, generation: _Generation, log: RequestLog) -> None:
        super().__init__(headers={"cache-control": "no-cache"})
        # The length of a stream is not known beforehand.
        del self.headers["content-length"]
        self.generation = generation
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        generating = asyncio.create_task(self._generate(send))
        hanging_up = asyncio.create_task(_disconnect(receive))
        end = "server_stopped"
        try:
            await asyncio.wait((generating, hanging_up), return_when=asyncio.FIRST_COMPLETED)
            end = "error" if generating.done() else "closed_by_client"
            if generating.done():
                end = generating.result()
        finally:
            generating.cancel()
            hanging_up.cancel()
            self.log.end(end)

    async def _generate(self, send: Send) -> str:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for event in self.generation.events(self.log):
            await send({"type": "http.response.body", "body": event, "more_body": True})
        if not self.generation.drops_connection:
            # Without this last part the server sees an unfinished answer and drops the line.
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return "cut" if self.generation.is_cut else "complete"


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _delta(piece: Piece, *, first: bool) -> dict[str, Any]:
    role = {"role": "assistant"} if first else {}
    match piece:
        case Text(content):
            return role | {"content": content}
        case CallStart(index, call_id, tool):
            function = {"name": tool, "arguments": ""}
            call = {"index": index, "id": call_id, "type": "function", "function": function}
            return role | {"tool_calls": [call]}
        case CallArgs(index, arguments):
            return {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}
    return {}


def _offered(body: dict[str, Any]) -> tuple[str, ...]:
    if body.get("tool_choice") == "none":
        return ()
    return tuple(tool["function"]["name"] for tool in body.get("tools") or [])


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def _refusal(
    status: int, message: str, param: str | None = None, *, code: str | None = None
) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return JSONResponse({"error": error}, status_code=status)
