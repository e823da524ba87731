"""The process in front hands on what it is asked, and what is answered, over real sockets."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import httpx2
import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from agentruns.passing import PagesAway, Passing, Receive, Scope, Send, told
from agentruns.services.ports import LOOPBACK, free_ports

BIG = 5_000_000
gone: SimpleQueue[str] = SimpleQueue()  # who hung up on the process behind


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """The process behind: says what it was asked."""
    assert scope["type"] != "lifespan"
    if scope["type"] == "websocket":
        await echo_socket(scope, receive, send)
        return
    scope = told(scope)
    body = b""
    while (message := await receive()).get("more_body") or message.get("body"):
        body += message["body"]
        if not message.get("more_body"):
            break
    if scope["path"] == "/slow":
        gone.put((await receive())["type"])
        return
    names = ("client", "scheme", "path", "method")
    said: dict[str, Any] = {name: scope[name] for name in names} | {"body": len(body)}
    said["query"] = scope["query_string"].decode()
    said["headers"] = [(n.decode(), v.decode("latin-1")) for n, v in scope["headers"]]
    answer = b"x" * BIG if scope["path"] == "/big" else json.dumps(said).encode()
    headers = [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"keep-alive", b"timeout=5")]
    headers += [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 418, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def echo_socket(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    if scope["path"] == "/refused":
        await send({"type": "websocket.close"})
        return
    await send({"type": "websocket.accept"})
    headers = [(n.decode(), v.decode()) for n, v in told(scope)["headers"]]
    await send({"type": "websocket.send", "text": json.dumps(headers)})
    while (message := await receive())["type"] == "websocket.receive":
        if message["text"] == "bye":
            await send({"type": "websocket.close", "code": 4404, "reason": "no such run"})
            return
        await send({"type": "websocket.send", "text": message["text"] * 2})


def serve(app: Any, **where: Any) -> ExitStack:
    """A real server for the time of the block."""
    config = uvicorn.Config(app, ws="websockets-sansio", log_level="error", **where)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(2000):
        if server.started:
            break
        thread.join(0.01)
    ending = ExitStack()
    ending.callback(thread.join, 10)
    ending.callback(setattr, server, "should_exit", True)
    return ending


@pytest.fixture
def address() -> Iterator[str]:
    """Host and port of a server that passes everything on to `echo`."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "behind.sock")
        passing = Passing(path, 5.0)

        async def front(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await passing.lifespan(receive, send)
            elif scope["type"] == "websocket":
                await passing.socket(scope, receive, send)
            else:
                await passing.request(scope, receive, send)

        [port] = free_ports(1)
        with serve(echo, uds=path), serve(front, host=LOOPBACK, port=port, proxy_headers=False):
            yield f"{LOOPBACK}:{port}"


def test_a_request_arrives_as_it_was_sent_and_its_answer_too(address: str) -> None:
    answer = httpx2.post(
        f"http://{address}/a%2Fb//?q=%C3%A9&q=2",
        content=b"1234",
        headers={"Host": "pages.example", "Cookie": "c=d", "X-Forwarded-For": "8.8.8.8"},
    )
    said = answer.json()
    headers = dict(said["headers"])
    assert (answer.status_code, said["method"], said["body"]) == (418, "POST", 4)
    assert (said["path"], said["query"]) == ("/a/b//", "q=%C3%A9&q=2")
    assert (headers["host"], headers["cookie"]) == ("pages.example", "c=d")
    assert headers["x-forwarded-for"] == "8.8.8.8"  # as it came: who believes it is asked there
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert "keep-alive" not in answer.headers
    assert len(answer.headers.get_list("date")) == 1


def test_where_it_came_from_is_told_and_cannot_be_forged(address: str) -> None:
    forged = json.dumps({"client": ["8.8.8.8", 1], "scheme": "https"})
    said = httpx2.get(f"http://{address}/", headers={"agentruns-from": forged}).json()
    assert (said["client"][0], said["scheme"]) == (LOOPBACK, "http")
    assert "agentruns-from" not in dict(said["headers"])


def test_large_bodies_go_through_both_ways(address: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield from [b"y" * 100_000] * 20

    assert httpx2.post(f"http://{address}/", content=pieces()).json()["body"] == 2_000_000
    assert len(httpx2.get(f"http://{address}/big").content) == BIG


def test_a_reader_who_hangs_up_is_hung_up_on_behind(address: str) -> None:
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.get(f"http://{address}/slow", timeout=0.3)
    assert gone.get(timeout=10) == "http.disconnect"


def test_a_socket_goes_both_ways_and_its_end_is_told(address: str) -> None:
    with connect(f"ws://{address}/live", origin="http://own.example") as socket:  # type: ignore[arg-type]
        headers = dict(json.loads(socket.recv(10)))
        assert (headers["host"], headers["origin"]) == (address, "http://own.example")
        long = "é" * 30_000
        socket.send(long)
        assert socket.recv(10) == long * 2
        socket.send("bye")
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(10)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4404, "no such run")


def test_a_socket_that_is_refused_behind_is_refused(address: str) -> None:
    with pytest.raises(InvalidStatus) as refused, connect(f"ws://{address}/refused"):
        pass
    assert refused.value.response.status_code == 403


def test_that_nobody_is_behind_is_told_before_anything_is_answered() -> None:
    async def ask() -> None:
        scope = {"method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", b"x")]}
        passing = Passing("/nowhere/at/all.sock", 1.0)
        await passing.request(scope, nothing_more, not_called)

    async def nothing_more() -> Any:
        return {"type": "http.request", "body": b""}

    async def not_called(message: Any) -> None:
        raise AssertionError(message)

    with pytest.raises(PagesAway):
        asyncio.run(asyncio.wait_for(ask(), 10))
