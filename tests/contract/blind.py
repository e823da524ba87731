"""A proxy before a real server, which answers as if the server knew no filters (N17)."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import httpx2

from tests.contract.hands import Scene

_OF_A_CALENDAR = re.compile(rb"<C:prop-filter.*?</C:prop-filter>", re.DOTALL)
_NOT_PASSED_ON = (
    *("host", "connection", "content-length", "transfer-encoding", "date", "server"),
    *("accept-encoding", "content-encoding"),
)


@contextmanager
def without_filters(scene: Scene) -> Iterator[None]:
    """Whoever asks a server of the scene in this block gets all that there is."""
    with ExitStack() as ends:
        world = ends.enter_context(_proxy(scene.world.http))
        for name in ("CHAT", "TICKETS", "GIT_API", "HOOKS", "PAYMENTS"):
            url = getattr(scene.settings, f"{name}_URL")
            setattr(scene.settings, f"{name}_URL", url.replace(scene.world.http, world))
        calendar = urlsplit(scene.settings.CALDAV_URL)
        there = ends.enter_context(_proxy(f"http://{calendar.netloc}"))
        scene.settings.CALDAV_URL = f"{there}{calendar.path}"
        yield


@contextmanager
def _proxy(target: str) -> Iterator[str]:
    class Blind(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0] if self.command == "GET" else self.path
            answer = client.request(
                self.command,
                target + path,
                content=_OF_A_CALENDAR.sub(b"", body),
                headers=[pair for pair in self.headers.items() if _goes_on(pair[0])],
            )
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if _goes_on(name):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_REPORT = _pass_on

        def log_message(self, *_args: object) -> None:
            """The console is for the tests."""

    with (
        httpx2.Client(trust_env=False, headers={"Accept-Encoding": "identity"}) as client,
        ThreadingHTTPServer(("127.0.0.1", 0), Blind) as server,
    ):
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _goes_on(header: str) -> bool:
    return header.lower() not in _NOT_PASSED_ON
