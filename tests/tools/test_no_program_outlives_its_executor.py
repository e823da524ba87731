"""What a tool has started ends with whoever started it, however that one ends (L2)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.tools.imports.serving import McpServer, on_streams
from tests.tools.killing import (
    PATIENCE,
    executor,
    is_alive,
    killed_with_all_it_started,
    number_in,
    slow_remote,
    until,
)
from tools import children
from tools.gitcli import git

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans over")

PUSH = """
import pathlib, sys
from tools.gitcli import git
work = pathlib.Path(sys.argv[2])
git("push", "--quiet", sys.argv[1], "main:refs/heads/late", cwd=work, timeout=60)
"""
CALL = """
import sys
import anyio, django
django.setup()
from tools.imports.conversation import Conversation, Server

async def call():
    talk = Conversation(Server(command=tuple(sys.argv[1:])), "req_1", str)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.call, "book", {"what": "a room"}, lambda tool: None)
        while not talk.open.done():
            await anyio.sleep(0.01)
        talk.go.set()

anyio.run(call)
"""


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return slow_remote(tmp_path)


def test_a_push_whose_executor_is_killed_does_not_land(tmp_path: Path, remote: Path) -> None:
    with executor(PUSH, str(remote), str(tmp_path / "work")) as process:
        hook = psutil.Process(number_in(tmp_path / "begun"))
        killed_with_all_it_started(process, least=4)  # keeper, push, receive-pack, hook
    assert not is_alive(hook)
    (tmp_path / "go").touch()
    assert git("branch", "--list", "late", cwd=remote, timeout=20) == ""


def test_a_push_whose_time_is_over_does_not_land(tmp_path: Path, remote: Path) -> None:
    work = tmp_path / "work"
    with pytest.raises(subprocess.TimeoutExpired):
        git("push", "--quiet", str(remote), "main:refs/heads/late", cwd=work, timeout=2)
    assert not psutil.pid_exists(number_in(tmp_path / "begun"))
    (tmp_path / "go").touch()
    assert git("branch", "--list", "late", cwd=remote, timeout=20) == ""


def test_a_push_that_is_let_go_lands(tmp_path: Path, remote: Path) -> None:
    (tmp_path / "go").touch()
    with executor(PUSH, str(remote), str(tmp_path / "work")) as process:
        assert process.wait(PATIENCE) == 0
    assert git("branch", "--list", "late", cwd=remote, timeout=20).strip() == "late"


@on_linux
def test_what_has_left_its_group_ends_as_well(tmp_path: Path) -> None:
    """A daemon of two forks, in a session of its own."""
    daemon = f"(setsid sh -c 'echo $$ > {tmp_path}/daemon; exec sleep 600' &) ; exec sleep 600"
    with children.started(["sh", "-c", daemon]) as process:
        far = psutil.Process(number_in(tmp_path / "daemon"))
        assert os.getsid(far.pid) == far.pid
    assert process.returncode == 128 + signal.SIGKILL
    assert not is_alive(far)


def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    left = tmp_path / "left"
    script = f"""
        sh -c 'echo $$ > "{left}"; exec sleep 600' &
        while [ ! -s "{left}" ]; do sleep 0.01; done
        exit 3
    """
    with children.started(["sh", "-c", script]) as process:
        assert process.wait(PATIENCE) == 3
        assert not psutil.pid_exists(number_in(left))


@on_linux
def test_a_program_does_not_outlive_its_keeper(tmp_path: Path) -> None:
    with children.started(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 600"]) as process:
        program = psutil.Process(number_in(tmp_path / "pid"))
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: not is_alive(program), "it goes on without its keeper")


def test_a_program_has_its_streams_and_nothing_of_ours(tmp_path: Path) -> None:
    say = "import os, sys; print(len(os.listdir('/dev/fd')), sys.stdin.read(), end='')"
    with children.started(
        [sys.executable, "-c", say], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        out, _none = process.communicate("grüße", timeout=PATIENCE)
    assert out == "4 grüße"  # three streams, and the folder that it looks into
    assert process.returncode == 0


def test_a_program_that_is_asked_to_end_may_do_so_itself(tmp_path: Path) -> None:
    polite = f"""
        trap 'echo bye > "{tmp_path}/bye"; exit 5' TERM
        echo $$ > "{tmp_path}/pid"
        while :; do sleep 0.01; done
    """
    with children.started(["sh", "-c", polite]) as process:
        number_in(tmp_path / "pid")
        process.terminate()
        assert process.wait(PATIENCE) == 5
    assert (tmp_path / "bye").read_text() == "bye\n"


@pytest.fixture
def family(tmp_path: Path) -> McpServer:
    """An MCP server that has started another program for its call, as `npx` starts `node`."""
    server = on_streams(tmp_path, "plain_server.py")
    server.order(mode="family")
    return server


def test_an_mcp_program_dies_with_its_executor_and_so_does_what_it_started(
    family: McpServer,
) -> None:
    with executor(CALL, *family.command) as process:
        family.wait_for("started")
        grandchild = psutil.Process(family.journal("started")[0]["pid"])
        killed_with_all_it_started(process, least=3)  # keeper, server, what the server started
    assert not is_alive(grandchild)
