"""Random runs, random stops, random kills; then the ledger against the world."""

import json
import secrets
import signal
import sys
from argparse import SUPPRESS, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentruns.services.errors import ServiceError
from agentruns.services.scratch import ScratchFolder
from agentruns.soak.host import PLAY, Host, Wish
from agentruns.soak.play import play
from agentruns.soak.table import lines_of
from agentruns.soak.truth import has_passed

LARGEST_SEED = 10**9


class Command(BaseCommand):
    help = (
        "Play random runs on a stack of its own, stop them at random, kill its workers and "
        "restart its servers; then stop everything and hold the ledger against the world. "
        "Exits 0 only if nothing leaked, was lost, doubled or got stuck. "
        "The same seed plans the same: which runs, what their model writes and calls, which "
        "stops after which time or at which pause point, what people decide, when which worker "
        "or server is hit. How far each run has come by then depends on the machine. "
        "Ctrl-C ends the play early, and the report still follows."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--minutes", type=_positive, default=20.0, help="default: 20")
        parser.add_argument("--seed", type=int, help="default: a new one, which is printed")
        parser.add_argument(
            "--runs-per-second", type=_positive, default=2.4, help="started, at most; default: 2.4"
        )
        parser.add_argument(
            "--at-once", type=int, default=36, help="runs under way, at most; default: 36"
        )
        parser.add_argument(
            "--data-dir",
            type=Path,
            help="a new folder, which is kept (default: one that is gone afterwards)",
        )
        parser.add_argument("--json", action="store_true", help="print JSON, and nothing else")
        parser.add_argument(PLAY, dest="play", type=json.loads, help=SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["play"] is not None:
            play(options["play"])
            return
        if not settings.DEMO:
            raise CommandError("A soak plays in the demo's world, and DEMO is 0 here.")
        seed = options["seed"]
        wish = Wish(
            minutes=options["minutes"],
            seed=secrets.randbelow(LARGEST_SEED) if seed is None else seed,
            per_second=options["runs_per_second"],
            at_once=options["at_once"],
        )
        report = self._soak(wish, options["data_dir"])
        if options["json"]:
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
        else:
            for line in lines_of(report):
                self.stdout.write(line)
        if not has_passed(report):
            sys.exit(1)

    def _soak(self, wish: Wish, data_dir: Path | None) -> dict[str, Any]:
        if data_dir is not None and data_dir.exists() and any(data_dir.iterdir()):
            raise CommandError(f"{data_dir} is not empty: a soak begins with an empty folder.")
        scratch = ScratchFolder()
        # Asked to end is the same as Ctrl-C: with a report.
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
        self.stderr.write(f"Seed {wish.seed}: {wish.minutes:g} minutes on a stack of its own.")
        try:
            with Host(wish, data_dir or scratch.path / "data", self.stderr.write) as host:
                return host.soak()
        except ServiceError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:  # before the play, or again during its end
            sys.exit(128 + signal.SIGINT)
        finally:
            scratch.remove()


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 10_000:
        raise ArgumentTypeError("has to be more than 0")
    return number
