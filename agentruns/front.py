"""The process that the address leads to: it serves Stop itself, and passes all else on.

What draws pages holds Python's one lock for as long as it draws, and whoever asks meanwhile waits.
So nothing is drawn here but a few lines: Stop is answered at once, from connections to the database
that no page can take, also while the process behind hangs or is down.
"""

import asyncio
import json
from typing import Any

from django.conf import settings
from django.urls import Resolver404, resolve

from agentruns.api.problems import CONTENT_TYPE, problem
from agentruns.asgi import django_application
from agentruns.errors import PagesBusy
from agentruns.passing import PagesAway, Passing, Receive, Scope, Send

# By the names of their views: what must be answered whatever the pages do.
URGENT = {"run-stop", "run-pause", "run-undo-stop", "call-withhold", "api-cancel"}
SMALL = {"healthz", "readyz", "run-brief"}
RUN_PAGE = "run"

passing = Passing(settings.PAGES_SOCKET, settings.PAGES_PATIENCE)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """HTTP and WebSockets as ASGI has them."""
    if scope["type"] == "lifespan":
        await passing.lifespan(receive, send)
    elif scope["type"] == "websocket":
        await passing.socket(scope, receive, send)
    elif _is_served_here(scope):
        await django_application(scope, receive, send)
    else:
        try:
            await passing.request(scope, receive, send)
        except PagesAway:
            await _answer_instead(scope, send)


def _is_served_here(scope: Scope) -> bool:
    name = _view_of(scope["path"])
    return name in SMALL or (name in URGENT and scope["method"] == "POST")


def _view_of(path: str) -> str:
    try:
        return resolve(path).url_name or ""
    except Resolver404:
        return ""


async def _answer_instead(scope: Scope, send: Send) -> None:
    """503: of a run how it stands, with its Stop; of all else, that the pages do not answer."""
    if scope["path"].startswith("/api/"):
        body = json.dumps(problem(PagesBusy())).encode()
        headers = [(b"content-type", CONTENT_TYPE.encode()), (b"retry-after", b"1")]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    is_run = _view_of(scope["path"]) == RUN_PAGE and scope["method"] == "GET"
    path = f"{scope['path']}brief/" if is_run else "/busy/"
    inner = {**scope, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}

    async def send_as_busy(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message = {**message, "status": 503}
            message["headers"] = [*message["headers"], (b"retry-after", b"1")]
        await send(message)

    await django_application(inner, _nothing_more(), send_as_busy)


def _nothing_more() -> Receive:
    """The body is spent: an empty one, and then silence."""
    said = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        for message in said:
            return message
        return await asyncio.Future()

    return receive
