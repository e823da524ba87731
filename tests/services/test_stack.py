import socket
import urllib.request
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from agentruns.services.discover import StackLock, running_services
from agentruns.services.errors import AlreadyUp, PortInUse, ServiceError
from agentruns.services.ports import LOOPBACK
from agentruns.services.stack import Stack


def test_a_port_in_use_is_named_and_nothing_is_left(data_dir: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        stack = Stack(data_dir, durable=False, env={"PORT": str(port)})
        with pytest.raises(PortInUse, match=rf"Port {port} is in use.*PORT={port + 1}"):
            stack.start()
    assert stack.pids == {}
    assert not (data_dir / "postgres").exists()
    lock = StackLock(data_dir)
    assert lock.acquire()
    lock.release()


def test_a_second_start_leaves_the_first_alone(data_dir: Path) -> None:
    first = StackLock(data_dir)
    first.acquire()
    with pytest.raises(AlreadyUp, match=r"is up on .* already"):
        Stack(data_dir, durable=False).start()
    assert not first.acquire(patience=0)
    first.release()


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing"),
        ("REDIS_URL", "redis://127.0.0.1:1"),
    ],
)
def test_a_server_that_was_named_but_does_not_answer_is_not_replaced(
    data_dir: Path, name: str, url: str
) -> None:
    stack = Stack(data_dir, durable=False, env={name: url})
    with pytest.raises(ServiceError, match=f"of {name} does not answer"):
        stack.start()
    assert stack.pids == {}


def test_no_place_of_this_machine_leaks_into_a_stack_apart(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMTP_URL", "smtp://mail.example.com")
    assert "SMTP_URL" not in Stack(data_dir).env
    assert Stack(data_dir, apart=False).env["SMTP_URL"] == "smtp://mail.example.com"


def test_a_program_that_cannot_start_is_said_with_its_last_words(data_dir: Path) -> None:
    stack = Stack(data_dir, durable=False, web=False, env={"DEMO": "0", "LEASE_TTL": "soon"})
    with pytest.raises(ServiceError, match=r"(?s)prepare.*failed.*LEASE_TTL"):
        stack.start()
    assert stack.pids == {}
    assert running_services(data_dir) == {}


@pytest.mark.stack
@pytest.mark.parametrize("name", ["act", "pages", "web", "valkey", "postgres"])
def test_what_is_killed_comes_back_and_works(stack: Stack, name: str) -> None:
    before = stack.pids[name]
    stack.kill(name)
    stack.wait_for(name)
    assert stack.pids[name] != before
    described = running_services(stack.data_dir)
    assert described["pids"][name] == stack.pids[name]
    with urllib.request.urlopen(f"{stack.base_url}/healthz") as answer:
        assert answer.status == 200


@pytest.mark.stack
@pytest.mark.usefixtures("stack_db")
def test_the_demo_is_loaded_into_the_stacks_own_database() -> None:
    assert set(User.objects.values_list("username", flat=True)) >= {"ana", "omar", "ada"}
