"""One conversation with an MCP server, through the `mcp` package: list its tools, call one.

Async, and heavy to import: tools/imports/mcp.py does so when there is something to say, and runs
it in a thread of its own, so that whoever waits can look after other things meanwhile.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from django.utils.translation import gettext as _
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotification,
    CancelledNotificationParams,
    Implementation,
    PaginatedRequestParams,
    Tool,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from tools import children
from tools.builtin import http
from tools.contract import Data
from tools.errors import NoEffect, ToolError, Unclear
from tools.imports.offers import shown

CALL = "tools/call"
ERRORS = 2  # the number of a program's standard error
CANCELLED = -32800  # “request cancelled”: by its number alone, whatever the words say
NOT_EXECUTED = (INVALID_PARAMS, METHOD_NOT_FOUND)
PATIENCE = 1.5  # seconds, for the server to hear that it should stop
PATIENT = 20.0  # seconds that an open conversation waits for its call to be let out
MOST_PAGES = 20  # of a list of tools
LARGEST_MESSAGE = 8 * 1024 * 1024  # bytes of one answer
_RESULT: TypeAdapter[CallToolResult] = TypeAdapter(CallToolResult)
_US = Implementation(name="agentruns", version="1")


@dataclass(frozen=True)
class Server:
    """Where it is (`url`, or a `command` to start it) and what it is given, secrets and all."""

    url: str = ""
    command: tuple[str, ...] = ()
    secrets: Data = field(default_factory=dict)


@dataclass
class Conversation:
    """One session. `key`: the id of the one call in it, for the server to tell it by. `kept`: what
    the server says, without the secrets that it was told.

    `has_sent`: from then on, nobody knows what an error means. `is_given_up`: nothing is sent any
    more. `is_answered`: there was an answer to the call, whatever it says; `result`, if it is one,
    from then on, while the conversation is still being wound up.
    """

    server: Server
    key: str
    kept: Callable[[str], str]
    has_sent: bool = False
    is_given_up: bool = False
    is_answered: bool = False
    result: Data | None = None
    open: Future[None] = field(default_factory=Future)
    go: anyio.Event | None = None
    session: ClientSession | None = None

    async def list_tools(self) -> tuple[list[Data], str]:
        """Every tool of the server, as it describes them, and what the server calls itself."""
        async with self._open() as session:
            info = session.server_info
            return [_as_data(tool) async for tool in _tools(session)], info.name if info else ""

    async def call(self, name: str, arguments: Data, check: Callable[[Data | None], None]) -> Data:
        """Have `check` look at the tool as it is now; say that it is `open`; and call it as soon as
        `go` is set, which it waits PATIENT seconds for. The result, as data.

        Raises NoEffect where the server says that it did nothing; whatever `check` raises; and
        anything else: once it `has_sent`, nobody knows what has happened then.
        """
        async with self._open() as session:
            check(await _find(session, name))
            self.go = anyio.Event()
            self.open.set_result(None)
            with anyio.fail_after(PATIENT):
                await self.go.wait()
            if self.is_given_up:
                raise TimeoutError
            self.has_sent = True
            self.session = session
            try:
                result = await self._result(session, name, arguments)
            except MCPError as error:
                self.is_answered = error.code != CONNECTION_CLOSED
                raise self._meaning(error) from error
            self.is_answered, self.result = True, result
            return result

    async def give_up(self, reason: str) -> bool | None:
        """Ask the server to stop the call. None if it was never sent; else whether it is known
        that the server got to hear it.
        """
        self.is_given_up = True
        session = self.session
        if session is None:
            return None
        with contextlib.suppress(MCPError), anyio.move_on_after(PATIENCE):
            params = CancelledNotificationParams(request_id=self.key, reason=reason)
            await session.send_notification(CancelledNotification(params=params))
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return True  # the connection was closed, which says it
            # An answer to what was said afterwards tells that the other was heard.
            await session.send_ping()
            return True
        return self.is_answered

    def _meaning(self, error: MCPError) -> ToolError:
        """What an error in place of a result says about the call."""
        if error.code == PARSE_ERROR:  # the library's, with all that the server said in it
            return Unclear(_("No answer: %(words)s") % {"words": _("it did not keep to MCP.")})
        words = {"words": shown(self.kept(error.message), 500)}
        if error.code == CONNECTION_CLOSED:
            return Unclear(_("No answer: %(words)s") % words)
        if error.code in NOT_EXECUTED:
            return NoEffect("refused", _("The server refused it: “%(words)s”") % words)
        said = _("The server answered with an error: “%(words)s”") % words
        return Unclear(said, says_cancelled=error.code == CANCELLED)

    async def _result(self, session: ClientSession, name: str, arguments: Data) -> Data:
        # Not session.call_tool: that holds a result against a schema, and knows of none that does
        # not fit; but what has happened, has happened.
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
        result = await session.send_request(request, _RESULT)
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[ClientSession]:
        transport = _program(self.server) if self.server.command else _http(self.server)
        async with transport as (reads, writes):
            dispatcher = _Dispatcher(reads, writes)
            dispatcher.key = self.key
            async with ClientSession(dispatcher=dispatcher, client_info=_US) as session:
                await _introduce(session)
                yield session


class _Dispatcher(JSONRPCDispatcher[Any]):
    """Gives the call an id that we know, and leaves it to us to ask for its end."""

    key = ""

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        options: CallOptions = {**(opts or {})}
        if method == CALL:
            options["request_id"] = self.key
            options["cancel_on_abandon"] = False
        return await super().send_raw_request(method, params, options, **more)


async def _introduce(session: ClientSession) -> None:
    """By the handshake, in which a call can be cancelled and answered all the same; with a server
    that does without it, as that one wants.
    """
    try:
        await session.initialize()
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        await session.discover()


async def _tools(session: ClientSession) -> AsyncIterator[Tool]:
    cursor = None
    for _page in range(MOST_PAGES):
        params = PaginatedRequestParams(cursor=cursor) if cursor else None
        found = await session.list_tools(params=params)
        for tool in found.tools:
            yield tool
        cursor = found.next_cursor
        if not cursor:
            return


async def _find(session: ClientSession, name: str) -> Data | None:
    async for tool in _tools(session):
        if tool.name == name:
            return _as_data(tool)
    return None


def _as_data(tool: Tool) -> Data:
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True)


@contextlib.asynccontextmanager
async def _program(server: Server) -> AsyncIterator[Any]:
    """The server as a process of ours, which ends with the conversation, and with us, together
    with all that it has started. What it says beside the protocol is nobody's.
    """
    with children.Lifeline() as line:
        program, *args = children.kept(list(server.command), ERRORS)
        parameters = StdioServerParameters(command=program, args=args, env=server.secrets or None)
        # The library hands one stream of ours on, as the program's standard error.
        with os.fdopen(line.held, closefd=False) as held:
            async with stdio_client(parameters, errlog=held) as streams:
                yield streams


@contextlib.asynccontextmanager
async def _http(server: Server) -> AsyncIterator[Any]:
    client = _Client(
        headers={**server.secrets, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(10.0, read=None),  # whoever waits has a deadline
        trust_env=not http.is_near(server.url),
    )
    async with client, streamable_http_client(server.url, http_client=client) as streams:
        yield streams


class _Client(httpx2.AsyncClient):
    """Reads no more of an answer than LARGEST_MESSAGE."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method == "DELETE":  # the end of a session: nobody waits for the answer
            request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), 1.0)
        response = await super().send(request, **options)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self.inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self.inner:
            read += len(chunk)
            if read > LARGEST_MESSAGE:
                raise httpx2.ReadError("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self.inner.aclose()
