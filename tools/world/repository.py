"""The git remote of the demo world: a bare repository whose hooks keep the record."""

import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from tools.gitcli import git

_ROOT = Path(__file__).resolve().parents[2]
_SEEDS = {
    "main": {
        "README.md": "# Quarterly numbers\n\nOne branch per release, one file per quarter.\n",
        "numbers/q2.csv": "month,revenue,costs\nApr,412,301\nMay,430,322\nJun,447,318\n",
    },
    "release/q3": {
        "numbers/q3.csv": "month,revenue,costs\nJul,455,330\nAug,461,335\nSep,,\n",
    },
    "release/q4": {
        "numbers/q4.csv": "month,revenue,costs\nOct,,\nNov,,\nDec,,\n",
    },
}


def ensure_repository(world_dir: Path) -> Path:
    """The bare repository, seeded at the first start, with this start's hooks in it."""
    repo = world_dir / "repo.git"
    if not repo.exists():
        # Under another name first: a start that dies half-way leaves no half repository behind.
        unfinished = world_dir / "repo.git.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        _seed(unfinished)
        unfinished.rename(repo)
    # The machine's own settings must not take our hooks away, or start work behind them.
    git("config", "core.hooksPath", str(repo / "hooks"), cwd=repo, timeout=30)
    git("config", "receive.autogc", "false", cwd=repo, timeout=30)
    (repo / "hooks").mkdir(exist_ok=True)
    for hook in ("pre-receive", "post-receive"):
        _write_hook(repo, hook, world_dir)
    return repo


def _seed(repo: Path) -> None:
    git("init", "--quiet", "--bare", "--initial-branch=main", "--", str(repo), timeout=30)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        git("init", "--quiet", "--initial-branch=main", cwd=work, timeout=30)
        for branch, files in _SEEDS.items():
            if branch != "main":
                git("checkout", "--quiet", "-b", branch, "main", cwd=work, timeout=30)
            for path, text in files.items():
                target = work / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            git("add", "--all", cwd=work, timeout=30)
            git("commit", "--quiet", "-m", f"Start {branch}", cwd=work, timeout=30)
        git("push", "--quiet", "--all", "--", str(repo), cwd=work, timeout=30)


def _write_hook(repo: Path, hook: str, world_dir: Path) -> None:
    call = shlex.join([sys.executable, "-m", "tools.world.git_hook", hook, str(world_dir)])
    path = repo / "hooks" / hook
    path.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(_ROOT))} exec {call}\n")
    path.chmod(0o755)
