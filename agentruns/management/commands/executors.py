"""`manage.py executors`: the workers that carry out calls, a process for each call at a time."""

import argparse
import signal
from typing import Any

from celery.signals import task_postrun, task_prerun
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from agentruns.celery import app
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
        # One for the call, and one that takes its place when the server has ended it.
        connections.settings["default"]["OPTIONS"]["pool"]["max_size"] = 2
        task_prerun.connect(_set_alarm)
        task_postrun.connect(_clear_alarm)
        Forks(
            options["count"],
            lambda number: _work(f"{name}-{number}{at}{host}"),
            say=lambda text: self.stderr.write(text),
        ).keep()


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= MOST:
        raise argparse.ArgumentTypeError(f"from 1 to {MOST}")
    return count


def _work(name: str) -> None:
    app.Worker(
        hostname=name,
        pool="solo",
        queues=["act"],
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
    ).start()


def _set_alarm(**kwargs: Any) -> None:
    # A tool that ignores its own time limit: long since in doubt by then, it only holds a process.
    signal.alarm(settings.EXECUTOR_LIMIT)  # which nobody handles: it ends the process


def _clear_alarm(**kwargs: Any) -> None:
    signal.alarm(0)
