"""All servers of the demo world in one process, on loopback."""

import asyncio
import errno
import fcntl
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import uvicorn

from tools.world.calendars import serve_calendars
from tools.world.database import ensure_database
from tools.world.faults import Faults
from tools.world.http import OpenConnections, build_app
from tools.world.mail import serve_mail
from tools.world.repository import ensure_repository
from tools.world.seeds import ensure_archive, ensure_files


class WorldError(Exception):
    """The world cannot start; the text is a sentence for a person."""


@dataclass(frozen=True)
class World:
    """Where the world lives: its folder, the folder of old mail, its three ports, the address of
    its database ("" if it has none), and the folder of files if that is not one of its own.
    """

    folder: Path
    archive: Path
    http_port: int
    smtp_port: int
    caldav_port: int
    database: str = ""
    files: Path | None = None


class _Server(uvicorn.Server):
    """uvicorn without signal handlers of its own, and with a moment at which it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(world: World, announce: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT; `announce` gets one line once every server accepts.

    Raises WorldError if a port is taken, or another world runs in the same folder.
    """
    world.folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(world.folder):
        ensure_archive(world.archive)
        _ensure_files(world)
        _ensure_database(world)
        ensure_repository(world.folder)
        faults = Faults(world.folder)
        faults.clear()
        with _named_port(world.http_port, "WORLD_HTTP_PORT"):
            listener = _listen(world.http_port)
        with _named_port(world.smtp_port, "WORLD_SMTP_PORT"):
            mail = await serve_mail(world.folder, faults, world.smtp_port)
        with _named_port(world.caldav_port, "WORLD_CALDAV_PORT"):
            calendars = serve_calendars(world.folder, faults, world.caldav_port)
        try:
            await _serve_http(world, faults, listener, announce)
        finally:
            mail.close()
            calendars.shutdown()
            calendars.server_close()


async def _serve_http(
    world: World, faults: Faults, listener: socket.socket, announce: Callable[[str], None]
) -> None:
    server = _Server(
        uvicorn.Config(
            build_app(world.folder, faults),
            http=OpenConnections,
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, setattr, server, "should_exit", True)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await server.ready.wait()
    announce(
        f"world ready: http {world.http_port}, smtp {world.smtp_port}, "
        f"caldav {world.caldav_port}, record in {world.folder}"
    )
    await serving


def _ensure_files(world: World) -> None:
    """Its own folder of files; or a way to the one that tools are pointed at, whose log is a part
    of the record.
    """
    own = world.folder / "files"
    if world.files is None or world.files == own:
        ensure_files(own)
    elif not own.exists():
        own.symlink_to(world.files, target_is_directory=True)


def _ensure_database(world: World) -> None:
    try:
        ensure_database(world.database, world.folder)
    except psycopg.Error as error:
        raise WorldError(f"The database of SQL_TOOL_URL cannot be used: {error}") from error


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


@contextmanager
def _named_port(port: int, setting: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise WorldError(f"Port {port} is in use. Set {setting} to a free one.") from error


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two worlds on one record would each believe that they know all of it."""
    with (folder / "world.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WorldError(f"Another demo world runs in {folder}.") from error
        yield
