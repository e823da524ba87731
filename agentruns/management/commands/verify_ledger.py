import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from agentruns.protocol.heads import newest
from agentruns.services.ensure import ServicesCommand
from agentruns.verify import Result, Scope, verify


class Command(ServicesCommand):
    help = (
        "Check the invariants of the stop protocol over the database, and over the record of "
        "the demo world where there is one. Exits 1 if any of them is broken. Memory does not "
        "grow with the ledger."
    )
    needs_workers = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument(
            "--since",
            metavar="TIME",
            help="only what began since (ISO 8601, UTC if it says no zone)",
        )
        parser.add_argument(
            "--world",
            metavar="FOLDER",
            help="the world's folder (default: WORLD_DIR, if it exists)",
        )
        parser.add_argument(
            "--heads",
            action="store_true",
            help="only print the head of the chain of heads, to be kept elsewhere for --expect",
        )
        parser.add_argument(
            "--expect",
            metavar="HEAD",
            default="",
            help="a head that was printed before: the chain has to have it still",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["heads"]:
            self.stdout.write(str(newest() or "0:"))
            return
        scope = Scope(
            since=_moment(options["since"]),
            world_dir=_folder(options["world"]),
            expect=_head(options["expect"]),
        )
        results = verify(scope, self._progress(scope))
        if options["json"]:
            report = [_as_data(result) for result in results]
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
        else:
            self._print(results, scope)
        broken = sum(result.broken for result in results)
        if broken:
            raise CommandError(f"{broken} found that should not be.")

    def _progress(self, scope: Scope) -> Callable[[int], None] | None:
        """Where somebody looks on: how far it is, on one line that is written over."""
        if not self.stderr.isatty():
            return None
        total = scope.runs().count()

        def tell(count: int) -> None:
            end = "\n" if count >= total else ""
            self.stderr.write(f"\r{count} of {total} runs", str, ending=end)  # not in red
            self.stderr.flush()

        return tell

    def _print(self, results: list[Result], scope: Scope) -> None:
        self.stdout.write(f"world: {scope.world_dir or 'none, so I2 and I3 look at nothing'}")
        width = max(len(result.invariant.title) for result in results)
        for result in results:
            rule, found = result.invariant, result.broken
            title = rule.title.ljust(width)
            mark = "✕" if found else "✓"
            self.stdout.write(f"{mark} {rule.code:<4}{title}  {result.checked:>8} checked")
            for breach in result.breaches:
                self.stdout.write(f"      {breach.run_id or '-'}: {breach.what}")
            if found > len(result.breaches):
                self.stdout.write(f"      and {found - len(result.breaches)} more")


def _as_data(result: Result) -> dict[str, Any]:
    """`broken` counts all breaches; `breaches` has the first 1000 of them."""
    return {
        "code": result.invariant.code,
        "title": result.invariant.title,
        "checked": result.checked,
        "broken": result.broken,
        "breaches": [{"run_id": each.run_id, "what": each.what} for each in result.breaches],
    }


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"--since: “{text}” is not a time, such as 2026-11-29T15:00.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _head(text: str) -> str:
    number, _colon, link = text.partition(":")
    if text and not (number.isdecimal() and (len(link) == 64 or text == "0:")):
        raise CommandError(f"--expect: “{text}” is not a head, as --heads prints it.")
    return "" if text == "0:" else text


def _folder(given: str | None) -> Path | None:
    if given is None:
        return settings.WORLD_DIR if settings.WORLD_DIR.is_dir() else None
    if not Path(given).is_dir():
        raise CommandError(f"--world: there is no folder {given}.")
    return Path(given)
