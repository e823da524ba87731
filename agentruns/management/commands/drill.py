"""Play a scenario, stop it at a chosen point, and compare ledger and world."""

import json
import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from agentruns.drill.errors import DrillError
from agentruns.drill.faults import FAULTS, SERVICES
from agentruns.drill.parent import FIRST_TOKEN
from agentruns.drill.play import UNANSWERED, Plan, play
from agentruns.drill.points import Point, listing, point
from agentruns.drill.report import has_passed, report_of
from agentruns.drill.table import lines_of
from agentruns.models import StopRequest
from agentruns.services.ensure import ServicesCommand
from review.models import Approval
from tools.world import scenarios
from tools.world.faults import LONGEST, Fault
from tools.world.scenarios import ScenarioError

NOT_PLAYED = 2  # as argparse: it was asked for something that cannot be done


class Command(ServicesCommand):
    help = (
        "Play a scenario on the workers that are up (or on some of its own), break something at a "
        "point of it, and compare what the ledger says with what the world recorded. Exits 0 only "
        "if they agree and nothing leaked; 2 if it could not be played. Whatever takes a POINT may "
        "be given several times; --list-points says which there are, and what leads there."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--scenario", type=_scenario, default="inbox", help="default: inbox")
        parser.add_argument(
            "--parent",
            type=_scenario,
            metavar="SCENARIO",
            help="play it as the child of such a run (as cut-connection, which fails), and keep it "
            "at its first token until the sweeper has stopped it for that",
        )
        for option, (read, meaning) in AT_POINTS.items():
            parser.add_argument(
                option, type=read, action="append", default=[], metavar="POINT", help=meaning
            )
        parser.add_argument(
            "--fault",
            type=_fault,
            action="append",
            default=[],
            metavar="TOOL=KIND[:SECONDS]",
            help=f"what the world does wrong with the tool's next effect: {', '.join(FAULTS)} "
            "(which has the effect so many seconds after the caller has lost it)",
        )
        parser.add_argument(
            "--pending",
            choices=StopRequest.Pending.values,
            default=StopRequest.Pending.DISCARD.value,
            help="what becomes of calls that have not started",
        )
        parser.add_argument(
            "--answer",
            choices=(*Approval.Verdict.values, UNANSWERED),
            default=Approval.Verdict.APPROVED.value,
            help="what a reviewer says to each call that asks",
        )
        parser.add_argument("--resume", action="store_true", help="take the stopped run up again")
        parser.add_argument("--undo", action="store_true", help="at the end undo all that landed")
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
            parent=options["parent"] or "",
            keep_at=(FIRST_TOKEN,) if options["parent"] else (),
            pause_at=tuple(options["pause_at"]),
            stop_at=tuple(options["stop_at"]),
            stop_undo_at=tuple(options["stop_undo_at"]),
            twice_at=tuple(options["twice_at"]),
            kill_at=tuple(options["kill_at"]),
            lose_at=tuple(options["lose_at"]),
            faults=tuple(options["fault"]),
            pending=options["pending"],
            verdict=options["answer"],
            resumes=options["resume"],
            undoes=options["undo"],
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
        for line in listing():
            sys.stdout.write(f"{line}\n")
        parser.exit()


def _point(text: str) -> Point:
    try:
        return point(text)
    except DrillError as error:
        raise ArgumentTypeError(str(error)) from error


def _reached_point(text: str) -> Point:
    found = _point(text)
    if not found.is_reached:
        raise ArgumentTypeError(f"nobody comes to “{text}”; see --list-points")
    return found


def _fault(text: str) -> Fault:
    tool, _equals, what = text.partition("=")
    kind, _colon, seconds = what.partition(":")
    if tool not in SERVICES or kind not in FAULTS:
        raise ArgumentTypeError(
            f"“{text}” is no fault. TOOL is one of {', '.join(SERVICES)}; "
            f"KIND is one of {', '.join(FAULTS)}"
        )
    if seconds and not (seconds.isascii() and seconds.isdecimal() and int(seconds) <= LONGEST):
        raise ArgumentTypeError(f"“{seconds}” has to be seconds, {LONGEST} at most")
    if (SERVICES[tool], kind) == ("git", "busy"):
        raise ArgumentTypeError("git cannot be busy; choose refuse")
    fault = replace(FAULTS[kind], service=SERVICES[tool])
    return replace(fault, seconds=float(seconds)) if seconds else fault


def _scenario(name: str) -> str:
    try:
        return scenarios.load(name).name
    except ScenarioError as error:
        raise ArgumentTypeError(str(error)) from error


AT_POINTS: dict[str, tuple[Callable[[str], Point], str]] = {
    "--stop-at": (_point, "press Stop there (twice: a second time at a second point)"),
    "--stop-undo-at": (_reached_point, "stop the undo there (with --undo)"),
    "--pause-at": (_reached_point, "press Pause there, and let the run go on a moment later"),
    "--kill-at": (_reached_point, "kill -9 whoever comes to this point"),
    "--twice-at": (_reached_point, "deliver the message a second time to whoever comes there"),
    "--lose-at": (_reached_point, "lose each doorbell that is rung from there to the next point"),
}
