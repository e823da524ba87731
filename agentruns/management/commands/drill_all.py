"""Play every scenario, and compare ledger and world each time."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from agentruns.drill.round import Result, play_round
from agentruns.services.ensure import ServicesCommand
from agentruns.states import GROUPS

COLUMNS = ("scenario", "stop at", "ended", *GROUPS, "undone", "")


class Command(ServicesCommand):
    help = (
        "Play every scenario of the demo on the workers that are up (or on some of its own): to "
        "its end, and then undone; stopped in its prose; stopped at its first effect. Exits 0 only "
        "if ledger and world agree in all of them and nothing leaked."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON, and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("A drill plays the demo's scenarios, and DEMO is 0 here.")
        if not options["json"]:
            self.stdout.write(_line(COLUMNS))
        results = []
        for result in play_round():
            results.append(result)
            if not options["json"]:
                self.stdout.write(_line(_cells(result)))
                self.stdout.flush()
        if options["json"]:
            self.stdout.write(json.dumps([asdict(each) for each in results], indent=2))
        failed = [each for each in results if each.why]
        self.stderr.write(f"{len(results) - len(failed)} passed, {len(failed)} failed")
        if failed:
            sys.exit(1)


def _cells(result: Result) -> tuple[str, ...]:
    counts = (str(result.groups.get(name, 0) or "·") for name in GROUPS)
    verdict = f"✕ {result.why}" if result.why else "✓"
    undone = str(result.undone or "·")
    return (result.scenario, result.stop_at or "–", result.status, *counts, undone, verdict)


def _line(cells: tuple[str, ...]) -> str:
    widths = (18, 13, 15, *(max(len(name), 4) for name in GROUPS), 6, 0)
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
