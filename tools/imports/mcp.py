"""Tools of an MCP server: how they are listed, and how one is called.

`prepare` opens the conversation and compares the tool with what an admin has looked at, so that
`commit` has nothing to do but to send. It has a thread and an event loop of its own. The thread
that called keeps an eye on the deadline and on Stop, asks the server to stop where it has to, and
puts on record what came of that: `sent` (the server heard it, and has not confirmed),
`acknowledged` (it said that the call was cancelled), or `unknown` (whether it heard it).
"""

import shlex
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures import TimeoutError as NotYet
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from json import JSONDecodeError
from typing import Any
from uuid import uuid4

from anyio.from_thread import start_blocking_portal
from django.utils.translation import gettext as _
from pydantic import BaseModel, ValidationError

from tools.builtin import http
from tools.contract import Context, Data, Draft, Receipt, StopSignal
from tools.errors import NoEffect, ToolError, Unclear
from tools.imports import catalogue, schema
from tools.imports.described import Imported, bounded, cut, kept, plain, secret_values
from tools.imports.models import ImportedTool, ToolSource
from tools.imports.offers import (
    MOST_OFFERS,
    ImportProblem,
    Listing,
    Offer,
    Refusal,
    offer,
    shown,
)

LOOK_EVERY = 0.5  # seconds between two looks at whether the run was stopped
LAST_WORD = 2.0  # seconds that a server which was asked to stop has for an answer
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
PARSE_ERROR = -32700  # of JSON-RPC: an answer could not be read
CANCELLATION = "call.cancellation"
_UNREADABLE = (ValidationError, JSONDecodeError, UnicodeDecodeError)


def listing(source: ToolSource, *, timeout: float = 20.0) -> Listing:
    """All that the server offers now. Raises ImportProblem, or NoEffect for a missing secret."""
    secrets = secret_values(source)
    talk = _conversation(source, str(uuid4()), secrets, None)
    try:
        with start_blocking_portal() as portal:
            future = portal.start_task_soon(talk.list_tools)
            try:
                tools, name = future.result(timeout)
            except NotYet:
                future.cancel()
                raise
    except Exception as error:
        said = _("The server did not list its tools: %(why)s")
        raise ImportProblem(said % {"why": _why(error, talk.kept)}) from error
    if len(tools) > MOST_OFFERS:
        said = _("The server has %(n)s tools, more than %(limit)s.")
        raise ImportProblem(said % {"n": len(tools), "limit": MOST_OFFERS})
    offers: dict[str, Offer] = {}
    refused = []
    for tool in tools:
        try:
            if tool["name"] in offers:
                raise ImportProblem.at(tool["name"], _("there is a tool of that name already."))
            offers[tool["name"]] = offer_of(tool)
        except (ImportProblem, RecursionError) as error:
            name_of_it = shown(tool["name"], 200)
            why = str(error).removeprefix(f"{shown(tool['name'], 80)}: ")
            refused.append(Refusal(name_of_it, why or "…"))
    return Listing(list(offers.values()), refused, shown(name, 200))


def offer_of(tool: Data) -> Offer:
    """A tool as the server describes it, as an offer. Raises ImportProblem."""
    said = tool.get("annotations") or {}
    name = tool["name"]
    if len(name) > 200:
        raise ImportProblem.at(shown(name, 80), _("the name is too long."))
    return offer(
        name,
        title=tool.get("title") or said.get("title") or name,
        description=tool.get("description") or "",
        schema=schema.cleaned(tool.get("inputSchema"), shown(name, 80)),
        hints={key: said[key] for key in HINTS if isinstance(said.get(key), bool)},
        details={"outputSchema": tool["outputSchema"]} if tool.get("outputSchema") else {},
    )


class McpTool(Imported):
    """One tool of a server. What it answered is all that anybody knows: there is no look-up.

    An open conversation is no draft to be found later: it lives in this process, and ends by itself
    when nobody goes on with it. `commit` opens another then.
    """

    def prepare(self, ctx: Context, args: BaseModel) -> Draft:
        _close_what_is_over()
        _waiting[ctx.request_id] = _opened(self.row, ctx, args, secret_values(self.row.source))
        return Draft()

    def void(self, ctx: Context, draft: Draft) -> None:
        if (call := _waiting.pop(ctx.request_id, None)) is not None:
            call.close()

    def commit(self, ctx: Context, args: BaseModel, draft: Draft | None) -> Receipt:
        secrets = secret_values(self.row.source)
        call = _waiting.pop(ctx.request_id, None)
        if call is None or call.is_over:
            if ctx.is_stopped():
                raise StopSignal
            call = _opened(self.row, ctx, args, secrets)
        try:
            result = call.outcome(ctx)
        finally:
            call.close()
        return _receipt(kept(result, args, secrets))


def _receipt(result: Data) -> Receipt:
    """Of a result that may be kept. Raises Unclear for one that says that it is an error."""
    texts = [
        str(item.get("text", "")) if item.get("type") == "text" else f"[{item.get('type')}]"
        for item in result.get("content", [])
    ]
    text = "\n".join(texts)
    if result.get("isError"):
        said = _(
            "The server says that it went wrong: “%(words)s” Whether it had an effect by "
            "then, it does not say."
        )
        raise Unclear(said % {"words": shown(text, 500)})
    data = {"content": [_small(item) for item in result.get("content", [])]}
    if "structuredContent" in result:
        data["structured"] = result["structuredContent"]
    return Receipt(bounded(data), cut(text))


def _small(item: Data) -> Data:
    """A piece of an answer: texts cut, pictures and sounds by their kind and size alone."""
    if item.get("type") == "text":
        return {"type": "text", "text": cut(str(item.get("text", "")))}
    return {key: value if key != "data" else len(str(value)) for key, value in item.items()}


class _Call:
    """A call on its way, seen from the thread that waits for it."""

    def __init__(self, row: ImportedTool, ctx: Context, arguments: Data, talk: Any) -> None:
        self.row = row
        self.ctx = ctx
        self.talk = talk
        self.found: list[Data | None] = []
        self._ends = ExitStack()
        self.portal = self._ends.enter_context(start_blocking_portal())
        self.future: Future[Data] = self.portal.start_task_soon(
            talk.call, row.remote_name, arguments, self._check
        )

    @property
    def is_over(self) -> bool:
        """Whether the conversation has ended, or nobody waited for it in time."""
        return self.future.done()

    def close(self) -> None:
        """Whatever is still being said is broken off."""
        self.future.cancel()
        self._ends.close()

    def open(self) -> None:
        """Wait until there is nothing left to do but to send. Raises NoEffect."""
        wait([self.talk.open, self.future], self.ctx.timeout, FIRST_COMPLETED)
        if self.talk.open.done():
            return
        if not self.future.done():
            said = _("The server took too long before it was asked, so nothing was sent.")
            raise NoEffect("too_late", said, is_passing=True)
        self._result(0)

    def outcome(self, ctx: Context) -> Data:
        """Send, and wait for the result; ask for an end when the time is over, or the run was
        stopped.
        """
        self.ctx = ctx
        deadline = time.monotonic() + ctx.timeout
        ctx.sending()
        self.portal.call(self.talk.go.set)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return self._give_up("timed out")
            try:
                return self._result(min(LOOK_EVERY, left))
            except NotYet:
                if ctx.is_stopped():
                    return self._give_up("stopped by a person")

    def _check(self, tool: Data | None) -> None:
        """In the loop's thread: is it still what an admin has looked at?"""
        self.found.append(tool)
        try:
            revision = offer_of(tool).revision if tool else ""
        except ImportProblem:
            revision = ""
        if revision != self.row.revision:
            raise NoEffect("tool_changed", _("The tool is not what it was when it was allowed."))

    def _result(self, patience: float) -> Data:
        """The result; NotYet if there is none within `patience` seconds. Raises NoEffect, Unclear,
        or whatever else went wrong after it was sent.
        """
        try:
            return self.future.result(patience)
        except NotYet:
            if self.future.done():  # by a time limit in there, not by ours
                raise self._meaning(TimeoutError()) from None
            if self.talk.result is not None:  # only the end of the conversation takes its time
                result: Data = self.talk.result
                return result
            raise
        except (Exception, CancelledError) as error:
            meaning = self._meaning(error)
            if isinstance(meaning, NoEffect) and meaning.code == "tool_changed":
                catalogue.take_changed(self.row.name, self._offer_found())
            raise meaning from error

    def _offer_found(self) -> Offer | None:
        """The tool as it is now; None if it is gone, or is not to be had like this."""
        tool = self.found[-1]
        try:
            return offer_of(tool) if tool else None
        except ImportProblem:
            return None

    def _meaning(self, error: BaseException) -> Exception:
        """What an error says about the call."""
        causes = list(_leaves(error))
        known = next((each for each in causes if isinstance(each, ToolError)), None)
        if known is not None:
            return known
        never_sent = bool(causes) and all(isinstance(each, http.NEVER_SENT) for each in causes)
        if self.talk.has_sent and not never_sent:
            return Unclear(_("No answer: %(why)s") % {"why": _why(error, self.talk.kept)})
        said = _("The server could not be asked, so nothing was sent: %(why)s")
        why = _why(error, self.talk.kept)
        return NoEffect("unreachable", said % {"why": why}, is_passing=True)

    def _give_up(self, reason: str) -> Data:
        """Ask the server to stop, put that on record, and hear its last word."""
        was_heard: bool | None = self.portal.call(self.talk.give_up, reason)
        if was_heard is None:  # it was about to be
            raise StopSignal
        self.ctx.tell(CANCELLATION, status="sent" if was_heard else "unknown")
        try:
            return self._result(LAST_WORD)
        except NotYet:
            said = _("The server was asked to stop it, and has not said what became of it.")
            raise Unclear(said) from None
        except Unclear as error:
            if error.data.get("says_cancelled"):
                self.ctx.tell(CANCELLATION, status="acknowledged")
                said = _(
                    "The server says that it was cancelled. What it had done by then, it "
                    "does not say."
                )
                raise Unclear(said) from error
            raise


# Conversations that are open, by the call's key: between its `prepare` and its `commit`.
_waiting: dict[str, _Call] = {}


def _opened(row: ImportedTool, ctx: Context, args: BaseModel, secrets: dict[str, str]) -> _Call:
    """A conversation in which there is nothing left to do but to send. Raises NoEffect."""
    call = _Call(row, ctx, plain(args), _conversation(row.source, ctx.request_id, secrets, args))
    try:
        call.open()
    except BaseException:
        call.close()
        raise
    return call


def _close_what_is_over() -> None:
    """Of calls that were held after they had been prepared, and went on elsewhere or never."""
    for key in [key for key, call in _waiting.items() if call.is_over]:
        if (call := _waiting.pop(key, None)) is not None:
            call.close()


def _conversation(
    source: ToolSource, key: str, secrets: dict[str, str], args: BaseModel | None
) -> Any:
    module = _heavy()
    if source.kind == ToolSource.Kind.MCP_STDIO:
        server = module.Server(command=tuple(shlex.split(source.address)), secrets=secrets)
    else:
        server = module.Server(url=source.address, secrets=secrets)
    return module.Conversation(server, key, lambda said: kept(said, args, secrets))


@cache
def _heavy() -> Any:
    """The `mcp` package takes a second to load: not at each start of each process."""
    return import_module("tools.imports.conversation")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _why(error: BaseException, without_secrets: Callable[[str], str]) -> str:
    """In short, what went wrong; of several, the first. Never what the library says about an answer
    that it could not read: that holds the answer.
    """
    first = next(_leaves(error), error)
    if isinstance(first, _UNREADABLE) or getattr(first, "code", None) == PARSE_ERROR:
        return _("it did not keep to MCP.")
    if isinstance(first, http.NEVER_MADE):
        return http.why(first)
    said = f"{type(first).__name__}: {getattr(first, 'message', first)}"
    return shown(without_secrets(said).rstrip(": "), 300)
