"""Commands that need services find them or bring them."""

import os
import subprocess
import sys
from pathlib import Path

from agentruns.services.environment import isolated
from agentruns.services.programs import BASE_DIR

SCRIPT = """
import sys
import django
django.setup()
from agentruns.services.ensure import run_with_services
sys.exit(run_with_services(sys.argv[1:], whole=False))
"""


def _run(data_dir: Path, code: str) -> subprocess.CompletedProcess[str]:
    env = isolated(os.environ) | {"DATA_DIR": str(data_dir)}
    command = [sys.executable, "-c", SCRIPT, "shell", "-v0", "-c", code]
    return subprocess.run(
        command, env=env, cwd=BASE_DIR, capture_output=True, text=True, check=False
    )


def test_services_are_brought_for_the_time_of_a_command(data_dir: Path) -> None:
    code = "from django.contrib.auth.models import User; print(User.objects.count())"
    done = _run(data_dir, code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3
    assert done.stderr.startswith("Nothing is up here: starting the database")
    folder = Path(done.stderr.strip().rpartition(" in ")[2])
    assert not folder.exists()
    assert not (data_dir / "postgres").exists()


def test_the_commands_exit_code_is_passed_on(data_dir: Path) -> None:
    assert _run(data_dir, "import sys; sys.exit(7)").returncode == 7
