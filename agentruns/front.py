"""The process that the address leads to: it serves Stop itself, and passes all else on.

What draws pages holds Python's one lock for as long as it draws, and whoever asks meanwhile waits.
So nothing is drawn here but a few lines: Stop is answered at once, from connections to the database
that no page can take, also while the process behind hangs or is down.
"""

import asyncio
import json
from typing import Any
from weakref import WeakValueDictionary

from django.conf import settings
from django.urls import Resolver404, ResolverMatch, resolve, reverse

from agentruns.api.problems import CONTENT_TYPE, problem
from agentruns.asgi import django_application
from agentruns.bodies import Bodies
from agentruns.errors import AgentrunsError, DatabaseAway, PagesBusy
from agentruns.passing import PagesAway, Passing, Receive, Scope, Send

# By the names of their views: what must be answered whatever the pages do.
URGENT = {"run-stop", "run-pause", "run-undo-stop", "call-withhold", "api-cancel", "api-pause"}
SMALL = {"healthz", "readyz", "run-brief"}
RUN_PAGE = "run"
# Of what is urgent, one for a run at a time: while its row is locked, each would hold a thread and
# a connection, and those who want to stop another run need some too.
OF_ONE_RUN = 1
WAIT_LIMIT = 20.0  # seconds until one's turn: by then the database has given up on those before

passing = Passing(settings.PAGES_SOCKET, settings.PAGES_PATIENCE)
bodies = Bodies(settings.BODY_PATIENCE, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """HTTP and WebSockets as ASGI has them."""
    if scope["type"] == "lifespan":
        await passing.lifespan(receive, send)
    elif scope["type"] == "websocket":
        await passing.socket(scope, receive, send)
    else:
        try:
            async with bodies.whole(receive) as received:
                await _answer(scope, received, send)
        except PagesAway:
            await _answer_instead(scope, send, PagesBusy())
        except AgentrunsError as error:
            await _answer_instead(scope, send, error)


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    view = _view_of(scope["path"])
    name = view.url_name if view else ""
    if view and name in URGENT and scope["method"] == "POST":
        await _in_turn(view.kwargs["run_id"], scope, receive, send)
    elif name in SMALL:
        await django_application(scope, receive, send)
    else:
        await passing.request(scope, receive, send)


async def _in_turn(run_id: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Raises DatabaseAway for one that those before keep waiting for too long."""
    turn = turns.setdefault(run_id, asyncio.Semaphore(OF_ONE_RUN))
    try:
        async with asyncio.timeout(WAIT_LIMIT):
            await turn.acquire()
    except TimeoutError:
        raise DatabaseAway from None
    try:
        await django_application(scope, receive, send)
    finally:
        turn.release()


def _view_of(path: str) -> ResolverMatch | None:
    try:
        return resolve(path)
    except Resolver404:
        return None


async def _answer_instead(scope: Scope, send: Send, error: AgentrunsError) -> None:
    """The error in words; in the place of a run's page how it stands, with its Stop."""
    # What is left of a body that was not read would be taken for the next request.
    is_passing = error.status == PagesBusy.status
    more = [(b"retry-after", b"1")] if is_passing else [(b"connection", b"close")]
    if scope["path"].startswith("/api/"):
        body = json.dumps(problem(error)).encode()
        length = (b"content-length", str(len(body)).encode())
        headers = [(b"content-type", CONTENT_TYPE.encode()), length, *more]
        await send({"type": "http.response.start", "status": error.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    view = _view_of(scope["path"])
    is_run = view and view.url_name == RUN_PAGE and scope["method"] == "GET"
    path = f"{scope['path']}brief/" if is_run else reverse("unanswered", args=[error.code])
    inner = {**scope, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}

    async def send_so(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] in (200, error.status):
            headers = [*message["headers"], *more]
            message = {**message, "status": error.status, "headers": headers}
        await send(message)

    await django_application(inner, _nothing_more(), send_so)


def _nothing_more() -> Receive:
    """The body is spent: an empty one, and then silence."""
    said = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        for message in said:
            return message
        return await asyncio.Future()

    return receive
