"""The demo world as a real process, and callers with keys of their own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from pytest_django.fixtures import Settings

from agentruns.services.ports import free_ports
from tools.contract import Context
from tools.world.calendars import seed_event
from tools.world.record import Effect, effects

ROOT = Path(__file__).resolve().parents[2]
NewContext = Callable[..., Context]


@dataclass(frozen=True)
class RunningWorld:
    folder: Path
    http_port: int
    smtp_port: int
    caldav_port: int
    process: subprocess.Popen[str]

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    def effects(self, ctx: Context) -> list[Effect]:
        """What the world recorded of this call, its items too."""
        return [each for each in effects(self.folder) if each.call_key == ctx.request_id]

    def fault(self, service: str, mode: str, *, seconds: float = 1.0, times: int = 1) -> None:
        body = {"service": service, "mode": mode, "seconds": seconds, "times": times}
        httpx2.post(f"{self.http}/_world/faults", json=body).raise_for_status()

    def clear_faults(self) -> None:
        httpx2.delete(f"{self.http}/_world/faults").raise_for_status()


@contextmanager
def running_world(folder: Path) -> Iterator[RunningWorld]:
    """`manage.py world` on free ports, until the end of the block."""
    http, smtp, caldav = free_ports(3)
    environment = os.environ | {
        "WORLD_DIR": str(folder),
        "WORLD_HTTP_PORT": str(http),
        "WORLD_SMTP_PORT": str(smtp),
        "WORLD_CALDAV_PORT": str(caldav),
        "MODEL_PACE": "0",
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "world"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("world ready"), line
        yield RunningWorld(folder, http, smtp, caldav, process)
    finally:
        process.terminate()
        process.wait(timeout=10)
        process.stdout.close()


@pytest.fixture(scope="session")
def _world_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorld]:
    # A space in the path, as in somebody's home folder.
    with running_world(tmp_path_factory.mktemp("the world")) as world:
        yield world


@pytest.fixture
def world(
    _world_process: RunningWorld, settings: Settings, tmp_path: Path
) -> Iterator[RunningWorld]:
    """The running world; the settings point at it, no fault is left over, and the meeting that is
    there from the start is as it was.
    """
    point_at(settings, _world_process, tmp_path)
    lunch = f"{settings.CALDAV_URL}team-lunch.ics"
    # (Without the certificates, whose loading takes longer than the rest.)
    httpx2.put(lunch, content=seed_event().encode(), verify=False).raise_for_status()
    yield _world_process
    _world_process.clear_faults()


def point_at(settings: Settings, world: RunningWorld, data_dir: Path) -> None:
    settings.DATA_DIR = data_dir
    settings.WORLD_DIR = world.folder
    settings.MAIL_ARCHIVE = world.folder / "maildir"
    settings.SMTP_URL = f"smtp://127.0.0.1:{world.smtp_port}"
    settings.CALDAV_URL = f"http://127.0.0.1:{world.caldav_port}/demo/team/"
    settings.GIT_REMOTE = str(world.folder / "repo.git")
    settings.GIT_API_URL = f"{world.http}/git/repos/demo/team"
    settings.CHAT_URL = f"{world.http}/chat"
    settings.TICKETS_URL = f"{world.http}/tickets"
    settings.FILES_DIR = world.folder / "files"
    settings.PAYMENTS_URL = f"{world.http}/payments"
    settings.HOOKS_URL = f"{world.http}/hooks"
    settings.HTTP_ALLOWED_HOSTS = [f"127.0.0.1:{world.http_port}"]
    settings.HTTP_READ_HOSTS = [f"127.0.0.1:{world.http_port}"]


@pytest.fixture
def new_context() -> NewContext:
    """A call's context with a key of its own."""

    def make(timeout: float = 10.0) -> Context:
        return Context(f"req_{uuid4().hex}", "run_1", "call_1", "Ana Ferreira", timeout)

    return make
