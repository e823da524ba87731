"""The programs of a stack, and how to see that each is ready."""

import http.client
import os
import platform
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from celery import Celery
from kombu.exceptions import OperationalError
from redis import RedisError

from agentruns.services.ports import LOOPBACK, accepts
from agentruns.services.processes import Spec

BASE_DIR = Path(__file__).resolve().parents[2]
MANAGE = [sys.executable, str(BASE_DIR / "manage.py")]
CELERY = [sys.executable, "-m", "celery", "-A", "agentruns", "--quiet"]
UVICORN = [sys.executable, "-m", "uvicorn", "--ws", "websockets-sansio", "--no-access-log"]
UVICORN += ["--ws-per-message-deflate", "false"]  # compressing would keep all others waiting
UVICORN += ["--ws-max-size", "65536", "--timeout-graceful-shutdown", "3", "--log-level", "warning"]
WORLD_PORTS = ("WORLD_HTTP_PORT", "WORLD_SMTP_PORT", "WORLD_CALDAV_PORT")

# Queue, and how many tasks its worker has at once: many streams in one process; calls in processes
# of their own, so that one that hangs holds up no other; a few sweeps.
WORKERS = {"think": 16, "act": 4, "control": 2}
# Where there is more to do than there are processors, what draws and what thinks let Stop go first.
NICENESS = {"pages": 10, "think": 5}


def node(worker: str) -> str:
    """The name by which a worker of this stack answers."""
    return f"{worker}@{platform.node()}.{os.getpid()}"


def programs(
    data_dir: Path,
    env: Mapping[str, str],
    *,
    web: bool,
    workers: bool,
    world: bool,
    at_once: Mapping[str, int] | None = None,
) -> list[Spec]:
    """What is to run, in the order of starting. `at_once`: how many tasks, by worker."""
    commands: dict[str, list[str]] = {}
    if world:
        commands["world"] = [*MANAGE, "world"]
    if web:
        # The first draws; the second is who people and programs speak to, and serves Stop itself.
        commands["pages"] = [*UVICORN, "agentruns.asgi:behind_front", "--no-proxy-headers"]
        # A connection that the other keeps must not end just as it is used again.
        commands["pages"] += ["--uds", env["PAGES_SOCKET"], "--timeout-keep-alive", "60"]
        commands["web"] = [*UVICORN, "agentruns.front:application"]
        commands["web"] += ["--http", "agentruns.server:Protocol"]
        commands["web"] += ["--host", LOOPBACK, "--port", env["PORT"], *_proxies(env)]
    counts = WORKERS | dict(at_once or {})
    env = {f"{name.upper()}_PLACES": str(counts[name]) for name in ("think", "act")} | dict(env)
    if workers:
        for name, count in counts.items():
            commands[name] = _worker(name, count)
        schedule = str(data_dir / "beat" / "schedule")
        commands["beat"] = [*CELERY, "beat", "-s", schedule, "--pidfile=", "-l", "WARNING"]
    return [
        Spec(
            name=name,
            argv=argv,
            env=env,
            cwd=BASE_DIR,
            log=data_dir / "logs" / f"{name}.log",
            niceness=NICENESS.get(name, 0),
        )
        for name, argv in commands.items()
    ]


def _proxies(env: Mapping[str, str]) -> list[str]:
    """Whose headers are believed: left to itself, uvicorn believes whoever is on this machine."""
    if trusted := env.get("TRUSTED_PROXIES"):
        return ["--proxy-headers", "--forwarded-allow-ips", trusted]
    return ["--no-proxy-headers"]


def _worker(name: str, count: int) -> list[str]:
    if name == "act":
        return [*MANAGE, "executors", "--name", node(name), "--count", str(count)]
    command = [*CELERY, "worker", "-Q", name, "-n", node(name), "-P", "threads", "-c", str(count)]
    return [*command, "--loglevel", "WARNING", "--without-gossip", "--without-mingle"]


def readiness(env: Mapping[str, str], names: list[str]) -> dict[str, Callable[[], bool]]:
    """Per program, a question whose answer is whether it does its work now."""
    questions: dict[str, Callable[[], bool]] = {
        "pages": lambda: _answers(_UnixConnection(env["PAGES_SOCKET"]), "/healthz"),
        "web": lambda: _answers(_to_port(env["PORT"]), "/healthz"),
        "world": lambda: all(accepts(int(env[port])) for port in WORLD_PORTS),
    }
    for worker in WORKERS:
        questions[worker] = partial(_pongs, env["REDIS_URL"], node(worker))
    return {name: questions[name] for name in names if name in questions}


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=5)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _to_port(port: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(LOOPBACK, int(port), timeout=5)


def _answers(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def _pongs(redis_url: str, name: str) -> bool:
    """Whether it answers; of the executors, each with its own number, whether any does."""
    numbered = name.replace("@", "*@")
    app = Celery("readiness", broker=redis_url, set_as_current=False)
    try:
        # A connection of its own: a pooled one may be dead since the server was restarted.
        with app, app.connection_for_write() as connection:
            return bool(
                app.control.ping(
                    pattern=numbered, matcher="glob", limit=1, timeout=1.0, connection=connection
                )
            )
    except (OperationalError, RedisError):
        return False
