"""For commands that need services: use what is up, or else start some for the time of it.

Settings are read once per process, at its start. So a command that has to start services runs
itself again, as a child of this process, on their addresses.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand

from agentruns.services.discover import running_services
from agentruns.services.errors import ServiceError
from agentruns.services.postgres import require_postgres
from agentruns.services.programs import BASE_DIR, MANAGE
from agentruns.services.scratch import ScratchFolder
from agentruns.services.stack import Stack


class ServicesCommand(BaseCommand):
    """A command that needs services, and finds or starts them before it runs.

    With `needs_workers` it needs the whole stack (workers, world): what is up, or one of its own
    with an empty database, on free ports. Without, it needs the database of this data folder.
    """

    needs_workers = True
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            is_served = not {"-h", "--help"}.isdisjoint(argv) or _is_served()
        except ServiceError as error:
            sys.exit(str(error))
        if not is_served:
            sys.exit(run_with_services(argv[1:], whole=self.needs_workers))
        super().run_from_argv(argv)


def run_with_services(arguments: Sequence[str], *, whole: bool = True) -> int:
    """Run `manage.py <arguments>` on services of its own; return its exit code.

    Its stdout and stdin pass through. What is said about the services goes to stderr.
    """
    kept = None if whole else _own_data()
    scratch = ScratchFolder()
    is_kept = kept is not None
    data_dir = kept or scratch.path / "data"
    stack = Stack(
        data_dir,
        web=whole,
        workers=whole,
        world=whole,
        demo=settings.DEMO,
        durable=is_kept,
    )
    what = "the whole stack" if whole else "the database"
    sys.stderr.write(f"Nothing is up here: starting {what} for this command, in {data_dir}\n")
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        with stack:
            command = [*MANAGE, *arguments]
            return subprocess.run(command, env=stack.env, cwd=BASE_DIR, check=False).returncode
    except ServiceError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        scratch.remove()


def _is_served() -> bool:
    """Whether the settings of this process point at services that somebody else keeps up.

    A database that was named but does not answer is an error: another one would be another answer.
    """
    if named := os.environ.get("DATABASE_URL"):
        require_postgres(named)
        return True
    return bool(running_services(settings.DATA_DIR))


def _own_data() -> Path | None:
    return settings.DATA_DIR if (settings.DATA_DIR / "postgres" / "PG_VERSION").exists() else None
