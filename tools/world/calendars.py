"""The calendar server of the demo world: Radicale behind a door that keeps the record."""

import io
import math
import socket
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from urllib.parse import unquote
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from icalendar import Calendar, Event
from radicale import config
from radicale.app import Application
from radicale.item import Item
from radicale.log import logger
from radicale.storage import BaseCollection

from tools.journal import Journal
from tools.world import journal
from tools.world.faults import Faults

COLLECTION = "/demo/team/"
SEED = f"{COLLECTION}team-lunch.ics"
MARK = "X-AGENTRUNS-REQUEST-ID"
_SEED_START = datetime(2031, 3, 5, 12, tzinfo=UTC)
Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class CalendarDoor:
    """WSGI: lets Radicale answer, and records each change before the answer leaves."""

    def __init__(self, app: Application, world_dir: Path, faults: Faults) -> None:
        self._app = app
        self._journal = Journal(world_dir / journal.CALENDAR)
        self._faults = faults
        # One change at a time: the record has the order in which the calendar changed.
        self._one_change = threading.Lock()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("PUT", "DELETE"):
            return self._app(environ, start_response)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        fault = self._faults.take("caldav", key=_keys(environ))
        if fault and fault.mode == "refuse":
            return _say(start_response, "403 Forbidden")
        if fault and fault.mode == "busy":
            again = ("Retry-After", str(math.ceil(fault.seconds)))
            return _say(start_response, "503 Service Unavailable", again)
        if fault and fault.mode == "late":
            threading.Thread(
                target=self._change, args=(environ, body, fault.seconds), daemon=True
            ).start()
            raise ConnectionAbortedError("dropped on request")
        answer, chunks = self._change(environ, body)
        if fault and fault.mode == "drop_after":
            raise ConnectionAbortedError("dropped on request")
        if fault and fault.mode == "error_after":
            return _say(start_response, "500 Internal Server Error")
        if fault:
            time.sleep(fault.seconds)
        start_response(*answer)
        return chunks

    def _change(
        self, environ: Environ, body: bytes, after: float = 0.0
    ) -> tuple[list[Any], list[bytes]]:
        """Have Radicale do it, and record that; returns its answer."""
        time.sleep(after)
        answer: list[Any] = []
        with self._one_change:
            chunks = list(self._app(environ, lambda *args: answer.extend(args)))
            self._record(environ, str(answer[0]), body)
        return answer, chunks

    def _record(self, environ: Environ, status: str, body: bytes) -> None:
        href = unquote(environ["PATH_INFO"])
        if not status.startswith("2"):
            return
        if environ["REQUEST_METHOD"] == "DELETE":
            self._journal.append("deleted", href=href)
            return
        verb = "created" if status.startswith("201") else "changed"
        _append(self._journal, verb, href, body.decode())


def _keys(environ: Environ) -> str:
    """By what the effect of a request can be told: its address, and whoever says who they are."""
    return f"{unquote(environ['PATH_INFO'])} {environ.get('HTTP_X_REQUEST_ID', '')}"


def _append(record: Journal, verb: str, href: str, ics: str) -> None:
    for said in _said(ics):
        record.append(verb, href=href, **said)


def _said(ics: str) -> list[dict[str, Any]]:
    """What the record has of each event: `marks` are the keys of all who changed it."""
    start: Any
    return [
        {
            "uid": str(event.get("uid", "")),
            "title": str(event.get("summary", "")),
            "start": start.dt.isoformat() if (start := event.get("dtstart")) else "",
            "status": str(event.get("status", "")),
            "marks": _listed(event.get(MARK)),
        }
        for event in Calendar.from_ical(ics).walk("VEVENT")
    ]


def _listed(found: Any) -> list[str]:
    return [str(each) for each in (found if isinstance(found, list) else [found] if found else [])]


def _say(start_response: StartResponse, status: str, *more: tuple[str, str]) -> list[bytes]:
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", "0"), *more])
    return []


class CalendarServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # Not HTTPServer's: it asks the machine's DNS for its own name.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]
        self.setup_environ()


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """One line per request would drown the log of the other processes."""

    def address_string(self) -> str:
        return str(self.client_address[0])


def serve_calendars(world_dir: Path, faults: Faults, port: int) -> CalendarServer:
    """Bind and serve in a thread; end it with `shutdown()`. Raises OSError if the port is taken."""
    app = _radicale(world_dir / "calendars")
    _catch_up(app, Journal(world_dir / journal.CALENDAR))
    door = CalendarDoor(app, world_dir, faults)
    server = make_server("127.0.0.1", port, door, CalendarServer, _QuietHandler)
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    return server


def _catch_up(app: Application, record: Journal) -> None:
    """Record the change that a server made and did not record, because it was killed right then."""
    recorded: dict[str, dict[str, Any]] = {}
    for entry in record.entries():
        if entry["event"] == "deleted":
            recorded.pop(entry["href"], None)
        else:
            recorded[entry["href"]] = entry
    with app._storage.acquire_lock("r"):
        (team,) = app._storage.discover(COLLECTION)
        assert isinstance(team, BaseCollection)
        there = {f"{COLLECTION}{item.href}": item.serialize() for item in team.get_all()}
    for href, ics in there.items():
        known = recorded.get(href)
        if known is None:
            # What is there before anything else is nobody's doing.
            _append(record, "seeded" if href == SEED else "created", href, ics)
        elif not any(said.items() <= known.items() for said in _said(ics)):
            _append(record, "changed", href, ics)
    for href in recorded.keys() - there.keys():
        record.append("deleted", href=href)


def seed_event() -> str:
    """The event that is in the calendar from the start, for a model to move or to cancel."""
    event = Event()
    event.add("uid", "team-lunch")
    event.add("dtstamp", _SEED_START)
    event.add("dtstart", _SEED_START)
    event.add("dtend", _SEED_START + timedelta(hours=1))
    event.add("summary", "Team lunch")
    event.add("attendee", "mailto:ana@team.example")
    event.add("attendee", "mailto:bo@team.example")
    calendar = Calendar()
    calendar.add("prodid", "-//agentruns//demo world//EN")
    calendar.add("version", "2.0")
    calendar.add_component(event)
    return str(calendar.to_ical().decode())


def _radicale(folder: Path) -> Application:
    """Radicale without accounts, with the team's calendar in it."""
    configuration = config.load()
    configuration.update(
        {
            "auth": {"type": "none"},
            "rights": {"type": "authenticated"},
            "web": {"type": "none"},
            "storage": {"filesystem_folder": str(folder)},
            "logging": {"level": "error"},
        },
        "demo world",
        privileged=True,
    )
    logger.setLevel("ERROR")
    app = Application(configuration)
    storage = app._storage
    with storage.acquire_lock("w", "demo"):
        if not any(storage.discover(COLLECTION)):
            storage.create_collection("/demo/")
            storage.create_collection(
                COLLECTION, props={"tag": "VCALENDAR", "D:displayname": "Team"}
            )
            (team,) = storage.discover(COLLECTION)
            assert isinstance(team, BaseCollection)
            item = Item(collection=team, text=seed_event())
            team.upload(SEED.removeprefix(COLLECTION), item)
    return app
