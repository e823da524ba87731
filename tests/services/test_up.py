"""`manage.py up`, as a person at a terminal has it."""

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import psutil
import pytest

from agentruns.services.discover import running_services
from agentruns.services.environment import isolated
from agentruns.services.ports import accepts, free_ports
from agentruns.services.processes import MARK, end_leftovers
from agentruns.services.programs import BASE_DIR, MANAGE
from tests.signing_in import csrf_token

pytestmark = pytest.mark.stack

Eventually = Callable[[Callable[[], bool]], None]


class Up:
    """Starts `manage.py up` on one data folder, and reads what it says."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        [self.port] = free_ports(1)
        self.env = isolated(os.environ) | {"DATA_DIR": str(data_dir), "PORT": str(self.port)}
        self.started: list[subprocess.Popen[str]] = []

    def start(self) -> subprocess.Popen[str]:
        up = subprocess.Popen(
            [*MANAGE, "up"],
            env=self.env,
            cwd=BASE_DIR,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(up)
        return up

    def manage(self, *arguments: str) -> str:
        command = [*MANAGE, *arguments]
        done = subprocess.run(
            command, env=self.env, cwd=BASE_DIR, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def alive(self) -> list[str]:
        """The processes of this data folder."""
        found = []
        for process in psutil.process_iter():
            try:
                servers = ("postgres", "valkey-server")
                if process.name() in servers and Path(process.cwd()).parent == self.data_dir:
                    found.append(process.name())
                elif process.environ().get(MARK) == str(self.data_dir):
                    found.append(" ".join(process.cmdline()))
            except (psutil.Error, OSError):
                continue
        return found


@pytest.fixture
def up(data_dir: Path) -> Iterator[Up]:
    terminal = Up(data_dir)
    yield terminal
    for started in terminal.started:
        started.kill()
        started.communicate()
    end_leftovers(data_dir)


def _read_until_ready(started: subprocess.Popen[str]) -> str:
    said = ""
    assert started.stdout is not None
    for line in started.stdout:
        said += line
        if "Ctrl-C ends everything" in line:
            return said
    raise AssertionError(f"not ready:\n{said}\n{started.stderr and started.stderr.read()}")


def test_up_says_where_to_go_and_ctrl_c_ends_everything(up: Up, eventually: Eventually) -> None:
    first = up.start()
    said = _read_until_ready(first)
    assert len(said.splitlines()) < 15
    for link in re.findall(r"http://\S+/demo/sign-in/\S+", said):
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(link) as page:
            token = csrf_token(page.read().decode())
        with browser.open(link, urlencode({"csrfmiddlewaretoken": token}).encode()) as page:
            assert page.status == 200
            assert "sign-in" not in page.url
    assert said.count("/demo/sign-in/") == 3
    assert running_services(up.data_dir)["port"] == up.port

    _, refusal = up.start().communicate()
    assert re.search(r"is up on .* already \(http://127\.0\.0\.1:\d+\)", refusal)
    assert accepts(up.port)

    first.send_signal(signal.SIGINT)
    first.communicate(timeout=15)
    assert first.returncode == 0
    eventually(lambda: up.alive() == [])
    assert running_services(up.data_dir) == {}


@pytest.mark.timeout(300)
def test_a_start_after_a_kill_repairs_and_finds_its_data(up: Up, eventually: Eventually) -> None:
    first = up.start()
    _read_until_ready(first)
    count = "from django.contrib.auth.models import User; print(User.objects.count())"
    create = "from django.contrib.auth.models import User; User.objects.create_user('kept')"
    before = int(up.manage("shell", "-v0", "-c", count))
    up.manage("shell", "-v0", "-c", create)
    orphans = running_services(up.data_dir)["pids"].values()
    first.kill()
    first.communicate()

    second = up.start()
    _read_until_ready(second)
    assert not any(psutil.pid_exists(pid) for pid in orphans)
    assert int(up.manage("shell", "-v0", "-c", count)) == before + 1
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=15)
    eventually(lambda: up.alive() == [])
