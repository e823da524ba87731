"""`manage.py executors`: the workers that carry out calls, a process for each call at a time."""

import argparse
from typing import Any

from celery.signals import task_postrun, task_prerun
from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from agentruns import alarm
from agentruns.celery import app
from agentruns.heldup import Lookout, Task
from agentruns.services.forks import Forks

MOST = 500  # processes: more is a slip of the finger


class Command(BaseCommand):
    help = "Carries out the calls of the queue “act”: so many processes, each one call at a time."
    # It has no business with the database before it forks: connections are not for sharing.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--count", type=_count, default=4, help="processes (default 4)")
        parser.add_argument("--name", default="act", help="each answers as NAME-1, NAME-2 …")

    def handle(self, *args: Any, **options: Any) -> None:
        name, at, host = options["name"].partition("@")
        app.loader.import_default_modules()
        app.finalize()
        connections.close_all()
        # One for the call, one that takes its place when the server has ended it, and one for who
        # looks whether the call still counts.
        connections.settings["default"]["OPTIONS"]["pool"]["max_size"] = 3
        forks = Forks(
            options["count"],
            lambda number: _work(f"{name}-{number}{at}{host}", Lookout(forks.held_up)),
            say=lambda text: self.stderr.write(text),
        )
        forks.keep()


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= MOST:
        raise argparse.ArgumentTypeError(f"from 1 to {MOST}")
    return count


def _work(name: str, lookout: Lookout) -> None:
    def begin(task: Any, args: Any, **kwargs: Any) -> None:
        alarm.wind()
        lookout.begin(Task(task.name, str(next(iter(args), ""))))

    def end(**kwargs: Any) -> None:
        alarm.clear()
        lookout.end()

    task_prerun.connect(begin, weak=False)
    task_postrun.connect(end, weak=False)
    app.Worker(
        hostname=name,
        pool="solo",
        queues=["act"],
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
    ).start()
