"""Run git without surprises: no prompt, no hooks of ours, no inherited state, always a deadline."""

import os
import subprocess
from pathlib import Path

from tools import children

COMMITTER = "agent@agentruns.invalid"


class GitError(Exception):
    """git ended with an error; `out` is what it wrote for programs, `err` what it wrote for people,
    with what the other side said.
    """

    def __init__(self, command: str, out: str, err: str) -> None:
        super().__init__(f"git {command}: {(out + err).strip()}")
        self.out = out


def git(
    *args: str,
    timeout: float,
    cwd: Path | None = None,
    text: str = "",
    env: dict[str, str] | None = None,
) -> str:
    """Run one git command and return its standard output.

    Raises GitError if git fails, and subprocess.TimeoutExpired after `timeout` seconds. Whatever
    ends it, what git has started itself ends with it: also where this process is killed.
    """
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", *args]
    with children.started(
        command,
        cwd=cwd,
        env=_environment() | (env or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        out, err = process.communicate(text, timeout=timeout)
    if process.returncode:
        raise GitError(args[0], out, err)
    return out


def _environment() -> dict[str, str]:
    # GIT_DIR and its like, inherited from a hook, would point git at somebody's repository.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "agentruns",
        "GIT_AUTHOR_EMAIL": "agent@agentruns.invalid",
        "GIT_COMMITTER_NAME": "agentruns",
        "GIT_COMMITTER_EMAIL": COMMITTER,
        "LC_ALL": "C",
    }
