"""Play a scenario, stop it at a chosen point, and compare ledger and world."""

import json
import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from agentruns.drill.errors import DrillError
from agentruns.drill.play import Plan, play
from agentruns.drill.points import NEVER, PATTERNS, Point, point
from agentruns.drill.report import has_passed, report_of
from agentruns.drill.table import lines_of
from agentruns.models import StopRequest
from agentruns.services.ensure import ServicesCommand
from tools.world import scenarios
from tools.world.scenarios import ScenarioError

NOT_PLAYED = 2  # as argparse: it was asked for something that cannot be done


class Command(ServicesCommand):
    help = (
        "Play a scenario on the workers that are up (or on some of its own), stop it at a point, "
        "and compare what the ledger says with what the world recorded. Exits 0 only if they "
        "agree and nothing leaked; 2 if it could not be played."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--scenario", type=_scenario, default="inbox", help="default: inbox")
        parser.add_argument("--stop-at", type=_point, default=NEVER, metavar="POINT")
        parser.add_argument(
            "--kill-at",
            type=_worker_point,
            metavar="POINT",
            help="kill -9 the worker that comes to this point",
        )
        parser.add_argument(
            "--pending",
            choices=StopRequest.Pending.values,
            default=StopRequest.Pending.DISCARD.value,
            help="what becomes of calls that have not started",
        )
        parser.add_argument("--json", action="store_true", help="print JSON, and nothing else")
        parser.add_argument(
            "--list-points", action=_ListPoints, nargs=0, help="print the points and exit"
        )

    def run_from_argv(self, argv: list[str]) -> None:
        # A mistyped point is told before any service is started for it.
        self._called_from_command_line = True
        self.create_parser(argv[0], argv[1]).parse_args(argv[2:])
        super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        plan = Plan(
            scenario=options["scenario"],
            stop_at=options["stop_at"],
            kill_at=options["kill_at"],
            pending=options["pending"],
        )
        try:
            if not settings.DEMO:
                raise DrillError("A drill plays the demo's scenarios, and DEMO is 0 here.")
            report = report_of(plan, play(plan))
        except DrillError as error:
            self.stderr.write(str(error))
            sys.exit(NOT_PLAYED)
        if options["json"]:
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False, default=str))
        else:
            for line in lines_of(report):
                self.stdout.write(line)
        if not has_passed(report):
            sys.exit(1)


class _ListPoints(Action):
    def __call__(self, parser: ArgumentParser, namespace: Namespace, *rest: Any) -> None:
        for pattern, meaning in PATTERNS.items():
            sys.stdout.write(f"{pattern:<18}{meaning}\n")
        parser.exit()


def _point(text: str) -> Point:
    try:
        return point(text)
    except DrillError as error:
        raise ArgumentTypeError(str(error)) from error


def _worker_point(text: str) -> Point:
    found = _point(text)
    if not found.is_reached_by_a_worker:
        raise ArgumentTypeError(f"no worker comes to “{text}”; see --list-points")
    return found


def _scenario(name: str) -> str:
    try:
        return scenarios.load(name).name
    except ScenarioError as error:
        raise ArgumentTypeError(str(error)) from error
