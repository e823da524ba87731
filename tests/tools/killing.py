"""Executors of the tests' own, to be killed while they wait for something that a tool started."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tools.gitcli import git

PATIENCE = 20.0  # seconds
HOOK = """#!/bin/sh
echo $$ > "{folder}/begun"
while [ ! -e "{folder}/go" ]; do sleep 0.02; done
"""


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def number_in(file: Path) -> int:
    """What a program wrote there, once it has."""
    until(lambda: file.exists() and file.read_text().endswith("\n"), f"nothing in {file.name}")
    return int(file.read_text())


@contextmanager
def executor(
    code: str, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that does this, and is over at the end of the block."""
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def killed_with_all_it_started(process: "subprocess.Popen[bytes]", least: int) -> None:
    """It is killed (-9), and nothing that came of it is left."""
    below = psutil.Process(process.pid).children(recursive=True)
    assert len(below) >= least, [each.name() for each in below]
    process.kill()
    until(lambda: not any(map(is_alive, below)), "what it had started goes on")


def slow_remote(folder: Path) -> Path:
    """A repository that takes a push once `go` is in the folder, and writes `begun` when asked."""
    work, bare = folder / "work", folder / "remote.git"
    git("init", "--quiet", "--initial-branch=main", str(work), timeout=20)
    git("commit", "--quiet", "--allow-empty", "-m", "Start", cwd=work, timeout=20)
    git("clone", "--quiet", "--bare", str(work), str(bare), timeout=20)
    git("config", "core.hooksPath", str(bare / "hooks"), cwd=bare, timeout=20)
    hook = bare / "hooks" / "pre-receive"
    hook.write_text(HOOK.format(folder=folder))
    hook.chmod(0o755)
    return bare
