"""The process that the address leads to: it serves Stop itself, and passes all else on.

What draws pages holds Python's one lock for as long as it draws, and whoever asks meanwhile waits.
So nothing is drawn here but a few lines: Stop is answered at once, from connections to the database
that no page can take, also while the process behind hangs or is down.
"""

import asyncio
import json
from typing import Any

from django.conf import settings
from django.http import parse_cookie
from django.urls import Resolver404, ResolverMatch, resolve, reverse

from agentruns.api.problems import CONTENT_TYPE, problem
from agentruns.asgi import django_application
from agentruns.bodies import Bodies
from agentruns.errors import AgentrunsError, PagesBusy, TooBusy
from agentruns.passing import PagesAway, Passing, Receive, Scope, Send
from agentruns.turns import Asker, Turns

# By the names of their views: what must be answered whatever the pages do.
URGENT = {"run-stop", "run-pause", "run-undo-stop", "call-withhold", "api-cancel", "api-pause"}
SMALL = {"healthz", "readyz", "run-brief"}
RUN_PAGE = "run"
OF_RUNS = "/api/v1/runs"  # where nobody is answered but who is signed in
WAIT_LIMIT = 20.0  # seconds until one's turn: by then the database has given up on those before

passing = Passing(settings.PAGES_SOCKET, settings.PAGES_PATIENCE)
bodies = Bodies(settings.BODY_PATIENCE, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
# Together as many as there are connections to the database. Of what is urgent an asker has one for
# a run at a time: while its row is locked, each would hold a connection.
urgent = Turns(places=18, of_one=12, queue=100, patience=WAIT_LIMIT)
small = Turns(places=4, of_one=2, queue=20, patience=5.0)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """HTTP and WebSockets as ASGI has them."""
    if scope["type"] == "lifespan":
        await passing.lifespan(receive, send)
    elif scope["type"] == "websocket":
        await passing.socket(scope, receive, recognising(asker_of(scope), send))
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
    asker = asker_of(scope)
    if name in URGENT or scope["path"].startswith(OF_RUNS):
        send = recognising(asker, send)
    if view and name in URGENT and scope["method"] == "POST":
        async with urgent.turn(asker, view.kwargs["run_id"]):
            await django_application(scope, kept(receive), send)
    elif name in SMALL:
        async with small.turn(asker, ""):
            await django_application(scope, receive, send)
    else:
        await passing.request(scope, receive, send)


def recognising(asker: Asker, send: Send) -> Send:
    """Whoever is let in here is somebody, and comes before those of whom that is not known."""

    async def heard(message: Any) -> None:
        is_let_in = message["type"] == "websocket.accept" or (
            message["type"] == "http.response.start" and message["status"] < 300
        )
        if is_let_in:
            urgent.recognise(asker)
        await send(message)

    return heard


def asker_of(scope: Scope) -> Asker:
    """By the token or the session that is sent along; neither is looked up here."""
    address = (scope.get("client") or ("",))[0]
    headers = dict(scope["headers"])
    token = headers.get(b"authorization", b"").decode("latin-1")
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
    return Asker(address, token or cookies.get(settings.SESSION_COOKIE_NAME, ""))


def kept(receive: Receive) -> Receive:
    """What has arrived whole is done, also for one who has gone since: Stop, above all."""
    is_read = False

    async def received() -> Any:
        nonlocal is_read
        if is_read:
            await asyncio.Future()
        message = await receive()
        is_read = not message.get("more_body")
        return message

    return received


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

    try:
        async with small.turn(asker_of(scope), ""):
            await django_application(inner, _nothing_more(), send_so)
    except TooBusy:
        plain = [(b"content-type", b"text/plain; charset=utf-8"), *more]
        await send({"type": "http.response.start", "status": error.status, "headers": plain})
        await send({"type": "http.response.body", "body": str(error.sentence).encode()})


def _nothing_more() -> Receive:
    """The body is spent: an empty one, and then silence."""
    said = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        for message in said:
            return message
        return await asyncio.Future()

    return receive
