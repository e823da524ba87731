"""A model provider that says what a test wants, in each wire format, over a real socket.

What a model says is a list of texts and calls. A format puts it on the wire as its makers do, one
server-sent event after the other, so that it can be cut after any of them.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.tools.world.serving import listening


@dataclass(frozen=True)
class Ask:
    """A call, with its arguments as pieces of JSON."""

    name: str
    pieces: tuple[str, ...]
    id: str = "call_1"

    @property
    def args(self) -> str:
        return "".join(self.pieces)


Said = str | Ask


@dataclass(frozen=True)
class Answer:
    """An answer on the wire. The last `ends` events say that it has ended. After all of `events`
    the provider ends its response, or breaks the connection, or says no more and keeps it open.
    """

    events: list[bytes]
    ends: int
    breaks: bool = False
    waits: bool = False

    def cut(self, count: int) -> "Answer":
        """The first so many of its events."""
        return Answer(self.events[:count], 0)

    def without_end(self) -> "Answer":
        return self.cut(len(self.events) - self.ends)

    def edited(self, edit: Callable[[dict[str, Any]], object]) -> "Answer":
        """The same, with the data of each event as `edit` leaves it."""
        events = []
        for event in self.events:
            head, data = event.decode().split("data: ")
            content = json.loads(data)
            edit(content)
            events.append(f"{head}data: {json.dumps(content)}\n\n".encode())
        return Answer(events, self.ends)

    def alternating(self, first: int, length: int) -> "Answer":
        """The same, with the events of two calls, each of so many, taken by turns."""
        one = self.events[first : first + length]
        two = self.events[first + length : first + 2 * length]
        by_turns = [event for pair in zip(one, two, strict=True) for event in pair]
        before, after = self.events[:first], self.events[first + 2 * length :]
        return Answer([*before, *by_turns, *after], self.ends)

    def torn(self, count: int) -> "Answer":
        """The same, and half of the next one."""
        following = self.events[count]
        return Answer([*self.events[:count], following[: len(following) // 2]], 0)


@dataclass
class Provider:
    """Answers every request, in whatever format, with the next of `answers`."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    is_left: threading.Event = field(default_factory=threading.Event)  # a client hung up

    async def answer(self, request: Request) -> StreamingResponse:
        self.asked.append(request.url.path)
        await request.body()
        return StreamingResponse(self._stream(self.answers.pop(0)), media_type="text/event-stream")

    async def _stream(self, answer: Answer) -> AsyncIterator[bytes]:
        try:
            for event in answer.events:
                yield event
            if answer.waits:
                await asyncio.Event().wait()
        except BaseException:
            self.is_left.set()
            raise
        if answer.breaks:
            raise ConnectionAbortedError("as the test wants it")


@contextmanager
def providing() -> Iterator[Provider]:
    provider = Provider()
    app = Starlette(routes=[Route("/{path:path}", provider.answer, methods=["POST"])])
    with listening(app) as url:
        provider.url = url
        yield provider


def chat_chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event of an OpenAI chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return _event({**head, "choices": [choice]})


def chat_call(index: int | None, *, id: str = "", name: str = "", args: Any = None) -> bytes:
    """One event of a chat completion that has a piece of a call, numbered like this."""
    function = {k: v for k, v in {"name": name, "arguments": args}.items() if v not in ("", None)}
    if args == "":
        function["arguments"] = ""
    call: dict[str, Any] = {"type": "function", "function": function}
    if index is not None:
        call["index"] = index
    if id:
        call["id"] = id
    return chat_chunk({"tool_calls": [call]})


def chat(said: list[Said]) -> Answer:
    events: list[bytes] = []
    asks = [each for each in said if isinstance(each, Ask)]
    for each in said:
        if isinstance(each, str):
            events.append(chat_chunk({"content": each}))
        else:
            index = asks.index(each)
            events.append(chat_call(index, id=each.id, name=each.name, args=""))
            events += [chat_call(index, args=piece) for piece in each.pieces]
    return chat_answer(*events, finish="tool_calls" if asks else "stop")


def chat_answer(*events: bytes, finish: str = "tool_calls") -> Answer:
    """These events, and a clean end."""
    end = [chat_chunk({}, finish), b"data: [DONE]\n\n"]
    return Answer([*events, *end], len(end))


def responses(said: list[Said]) -> Answer:
    """OpenAI's Responses."""
    items = [_item(number, each) for number, each in enumerate(said)]
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": []}
    shape = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    events = [{"type": "response.created", "response": {**head, **shape, "status": "in_progress"}}]
    for number, (each, item) in enumerate(zip(said, items, strict=True)):
        at = {"output_index": number, "item_id": item["id"]}
        if isinstance(each, str):
            begun = {**item, "content": [], "status": "in_progress"}
            part = {**at, "content_index": 0, "logprobs": []}
            pieces = [{"type": "response.output_text.delta", **part, "delta": each}]
        else:
            begun = {**item, "arguments": "", "status": "in_progress"}
            kind = "response.function_call_arguments"
            pieces = [{"type": f"{kind}.delta", **at, "delta": piece} for piece in each.pieces]
            pieces.append({"type": f"{kind}.done", **at, "arguments": each.args})
        events += [
            {"type": "response.output_item.added", "output_index": number, "item": begun},
            *pieces,
            {"type": "response.output_item.done", "output_index": number, "item": item},
        ]
    whole = {**head, **shape, "output": items, "status": "completed"}
    events.append({"type": "response.completed", "response": whole})
    return numbered(events)


def numbered(events: list[dict[str, Any]]) -> Answer:
    """Events of OpenAI's Responses, the last of which ends them."""
    frames = [_event({**each, "sequence_number": n}, each["type"]) for n, each in enumerate(events)]
    return Answer(frames, 1)


def _item(number: int, each: Said) -> dict[str, Any]:
    if isinstance(each, str):
        content = [{"type": "output_text", "text": each, "annotations": []}]
        kind = {"type": "message", "role": "assistant", "content": content}
        return {"id": f"msg_{number}", "status": "completed", **kind}
    call = {"type": "function_call", "call_id": each.id, "name": each.name, "arguments": each.args}
    return {"id": f"fc_{number}", "status": "completed", **call}


def anthropic(said: list[Said]) -> Answer:
    """Anthropic's Messages."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, each in enumerate(said):
        if isinstance(each, str):
            block: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": each}]
        else:
            block = {"type": "tool_use", "id": each.id, "name": each.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in ("", *each.pieces)]
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    has_calls = any(isinstance(each, Ask) for each in said)
    end = {"stop_reason": "tool_use" if has_calls else "end_turn", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return Answer([_event(each, each["type"]) for each in events], 2)


def google(said: list[Said]) -> Answer:
    """Google's generateContent: a call comes whole, in one event."""
    events = []
    for each in said:
        part: dict[str, Any] = {"text": each}
        if isinstance(each, Ask):
            part = {"functionCall": {"name": each.name, "args": json.loads(each.args or "{}")}}
        events.append(_candidate({"content": {"role": "model", "parts": [part]}}))
    events.append(
        _candidate({"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"})
    )
    return Answer(events, 1)


def _candidate(candidate: dict[str, Any]) -> bytes:
    return _event(
        {"candidates": [{**candidate, "index": 0}], "responseId": "r", "modelVersion": "m"}
    )


def _event(data: dict[str, Any], kind: str = "") -> bytes:
    name = f"event: {kind}\n" if kind else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


@dataclass(frozen=True)
class Format:
    """`model` is an agent's; `env` what its client reads, given the provider's URL."""

    model: str
    write: Callable[[list[Said]], Answer]
    env: Callable[[str], dict[str, str]]


def _openai(url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k"}


FORMATS = {
    "demo": Format("demo:any", chat, lambda url: {}),
    "chat": Format("openai-chat:m", chat, _openai),
    "responses": Format("openai:m", responses, _openai),
    "anthropic": Format(
        "anthropic:claude-m",
        anthropic,
        lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"},
    ),
    "google": Format(
        "google:gemini-m",
        google,
        lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GOOGLE_API_KEY": "k"},
    ),
}
