"""Real servers: one has one answer to everything, and remembers what it was asked; one drips."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import create_server
from threading import Event, Thread


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class Answering:
    port: int
    requests: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def answering(status: int, headers: dict[str, str], body: str | bytes = "") -> Iterator[Answering]:
    """Listens on loopback until the end of the block."""
    requests: list[Asked] = []

    class Answer(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length).decode()
            requests.append(Asked(self.command, self.path, dict(self.headers), text))
            content = body.encode() if isinstance(body, str) else body
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def log_message(self, *_args: object) -> None:
            """The console is for the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Answering(server.server_port, requests)
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def dripping() -> Iterator[int]:
    """A server that begins an answer and never comes to its end."""
    is_over = Event()

    def serve() -> None:
        connection, _peer = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            end = time.monotonic() + 10
            while not is_over.wait(0.05) and time.monotonic() < end:
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    with create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            is_over.set()
            thread.join()
