"""Pass a request or a live socket on to the process that draws, and its answer back as it comes.

Nothing is kept whole here but one message of a socket: bodies go through in pieces, and who sends
faster than the other side reads waits. Who asks, and over what, is said in a header of our own,
which `behind_front` (asgi.py) believes: it listens on a socket in a folder closed to all others.
Headers of proxies further out go through as they came.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import httpx2
import structlog
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from agentruns.cancellation import end_all

CONNECT_LIMIT = 2.0  # seconds
AT_ONCE = 200  # requests under way; further ones wait for WAIT_LIMIT seconds
OF_ONE_ADDRESS = 60  # of them
WAIT_LIMIT = 5.0
FROM = b"agentruns-from"
RESTARTING = 1012  # to a browser: come again

Headers = list[tuple[bytes, bytes]]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

# What is between two neighbours only (RFC 9110, 7.6.1), or is made anew here.
_OWN_WAY = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade"}
_OWN_WAY |= {b"transfer-encoding", b"expect", b"proxy-authenticate", b"proxy-authorization", FROM}
_OF_A_HANDSHAKE = {b"host", b"origin", b"content-length"}
_OF_THE_SERVER = {b"date", b"server"}

log = structlog.get_logger(__name__)


class PagesAway(Exception):
    """The process that draws did not take the request, or did not answer it in time."""


class Passing:
    """The way to the process that listens on the Unix socket `path`.

    `patience`: seconds without a word, before an answer begins or in the middle of it.
    """

    def __init__(self, path: str, patience: float) -> None:
        self._path = path
        self._patience = patience
        limits = httpx2.Limits(max_connections=AT_ONCE, max_keepalive_connections=32)
        self._under_way: Counter[str] = Counter()
        self._transport = httpx2.AsyncHTTPTransport(uds=path, limits=limits, trust_env=False)

    async def lifespan(self, receive: Receive, send: Send) -> None:
        """From the server's start to its end; then nothing is kept open."""
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._transport.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises PagesAway as long as nothing has been answered."""
        address = (scope.get("client") or ("",))[0]
        if self._under_way[address] >= OF_ONE_ADDRESS:
            raise PagesAway("too many requests from one address")
        self._under_way[address] += 1
        try:
            await self._pass(scope, receive, send)
        finally:
            self._under_way[address] -= 1
            if not self._under_way[address]:
                del self._under_way[address]

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_read = asyncio.Event()
        answering = asyncio.create_task(self._answer(scope, _body(receive, is_read), send))
        leaving = asyncio.create_task(_until_gone(receive, is_read))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                await answering
        except httpx2.TransportError as error:  # in the middle: the broken connection says so
            log.warning("pages.broke_off", path=scope["path"], error=repr(error))
        finally:
            await end_all([answering, leaving])

    async def _answer(self, scope: Scope, body: AsyncIterator[bytes], send: Send) -> None:
        asked = httpx2.Request(
            scope["method"],
            "http://pages/",  # where to is said below, letter by letter
            headers=_request_headers(scope),
            stream=_Stream(body),
            extensions={
                "target": _target(scope).encode("latin-1"),
                "timeout": {
                    "connect": CONNECT_LIMIT,
                    "read": self._patience,
                    "write": self._patience,
                    "pool": WAIT_LIMIT,
                },
            },
        )
        try:
            answer = await self._transport.handle_async_request(asked)
        except httpx2.LocalProtocolError:  # what no server would take
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        except httpx2.TransportError as error:
            raise PagesAway(repr(error)) from error
        try:
            headers = _answer_headers(answer.headers.raw)
            await send(
                {"type": "http.response.start", "status": answer.status_code, "headers": headers}
            )
            async for piece in answer.aiter_raw():
                async with asyncio.timeout(self._patience):  # for who does not read
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            log.warning("pages.not_read", path=scope["path"])
            raise httpx2.WriteTimeout("the one who asked does not read") from None
        finally:
            await answer.aclose()

    async def socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refused there is refused here; broken there, the page is told to come again."""
        await receive()  # websocket.connect
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        try:
            inner = await unix_connect(
                self._path,
                f"ws://{headers.get(b'host', '')}{_target(scope)}",
                additional_headers=_as_text(_request_headers(scope), but=_OF_A_HANDSHAKE),
                origin=headers.get(b"origin"),
                compression=None,
                user_agent_header=None,
                max_size=None,
                max_queue=2,
                ping_interval=None,
                open_timeout=self._patience,
                close_timeout=CONNECT_LIMIT,
            )
        except (OSError, InvalidHandshake, InvalidURI, ValueError):
            await send({"type": "websocket.close"})
            return
        await send({"type": "websocket.accept"})
        both = (_inwards(receive, inner), _outwards(inner, send))
        ways = [asyncio.create_task(way) for way in both]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_all(ways)
            await inner.close()
        code = inner.close_code if inner.close_code not in (None, 1005, 1006) else RESTARTING
        with suppress(Exception):  # the browser has gone
            await send({"type": "websocket.close", "code": code, "reason": inner.close_reason})


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            yield piece


async def _body(receive: Receive, is_read: asyncio.Event) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise httpx2.ReadError("the one who asks has gone")
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body"):
            is_read.set()
            return


async def _until_gone(receive: Receive, is_read: asyncio.Event) -> None:
    await is_read.wait()
    while (await receive())["type"] != "http.disconnect":
        pass


async def _inwards(receive: Receive, inner: ClientConnection) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        text = message.get("text")
        with suppress(ConnectionClosed):
            await inner.send(message["bytes"] if text is None else text)


async def _outwards(inner: ClientConnection, send: Send) -> None:
    with suppress(ConnectionClosed):
        async for message in inner:
            kind = "text" if isinstance(message, str) else "bytes"
            await send({"type": "websocket.send", kind: message})


def _target(scope: Scope) -> str:
    """Path and query as they were sent."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("latin-1")


def _request_headers(scope: Scope) -> Headers:
    headers = _without(scope["headers"])
    if any(name == b"transfer-encoding" for name, _value in scope["headers"]):
        headers.append((b"transfer-encoding", b"chunked"))
    told = {name: scope.get(name) for name in ("client", "server", "scheme")}
    return [*headers, (FROM, json.dumps(told).encode())]


def _answer_headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name, value) for name, value in _without(raw) if name not in _OF_THE_SERVER]


def _without(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Without what is said to the next neighbour only. What else somebody names as such in their
    `Connection` stays: it may be what a proxy further out said of them.
    """
    found = [(name.lower(), value) for name, value in headers]
    return [(name, value) for name, value in found if name not in _OWN_WAY]


def _as_text(headers: Headers, but: set[bytes]) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in headers
        if name not in but and not name.startswith(b"sec-websocket-")
    ]


def told(scope: Scope) -> Scope:
    """The scope of a request that was passed on, as it was where it came in."""
    said: Mapping[str, Any] = {}
    for name, value in scope["headers"]:
        if name == FROM:
            said = json.loads(value)
    headers = [(name, value) for name, value in scope["headers"] if name != FROM]
    return {**scope, **said, "headers": headers}
