"""What the bare repository runs around each push: `git_hook.py HOOK WORLD_DIR` on git's stdin."""

import subprocess
import sys
from pathlib import Path

from tools.journal import Journal
from tools.world import journal
from tools.world.faults import Faults

_NONE = "0" * 40


def main(hook: str, world_dir: Path) -> int:
    """Refuse on request before the push; record each ref after it, before git answers."""
    if hook == "pre-receive":
        return 1 if Faults(world_dir).take("git", "refuse") else 0
    record = Journal(world_dir / journal.GIT)
    for line in sys.stdin:
        old, new, ref = line.split()
        branch = ref.removeprefix("refs/heads/")
        if new == _NONE:
            record.append("branch_deleted", branch=branch, commit=old)
        else:
            record.append("branch_pushed", branch=branch, commit=new, request_id=_trailer(new))
    return 0


def _trailer(commit: str) -> str:
    """The Request-Id that a commit carries as its last trailer, or ""."""
    shown = subprocess.run(
        ["git", "log", "-1", "--format=%(trailers:key=Request-Id,valueonly)", commit, "--"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    values = shown.stdout.split()
    return values[-1] if values else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
