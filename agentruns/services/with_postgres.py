"""Run a manage.py command on an empty Postgres that is gone afterwards.

python -m agentruns.services.with_postgres makemigrations --check
"""

import os
import subprocess
import sys

from agentruns.services.environment import isolated
from agentruns.services.postgres import Postgres
from agentruns.services.programs import BASE_DIR, MANAGE
from agentruns.services.scratch import ScratchFolder


def main(arguments: list[str]) -> int:
    """Return the command's exit code."""
    folder = ScratchFolder()
    postgres = Postgres(folder.path, durable=False)
    try:
        postgres.start()
        env = isolated(os.environ) | {
            "DATABASE_URL": postgres.ensure_database("scratch"),
            "DATA_DIR": str(folder.path),
        }
        return subprocess.run([*MANAGE, *arguments], cwd=BASE_DIR, env=env, check=False).returncode
    finally:
        postgres.stop()
        folder.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
