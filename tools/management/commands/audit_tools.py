import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tools import registry
from tools.checks import gaps
from tools.contract import Tier
from tools.registry import RegisteredTool

COLUMNS = ("tool", "tier", "dispatch", "consent", "undo", "look-up")


class Command(BaseCommand):
    help = "Print what each registered tool promises. Exits 1 if one of them has a gap."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        tools = registry.all()
        rows = [_row(item) for item in tools]
        found = {item.name: gaps(item) for item in tools}
        if options["json"]:
            report = [row | {"gaps": found[row["tool"]]} for row in rows]
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
        else:
            self._table(rows)
        missing = [gap for each in found.values() for gap in each]
        if missing:
            raise CommandError("\n".join(missing))

    def _table(self, rows: list[dict[str, str]]) -> None:
        lines = [dict(zip(COLUMNS, COLUMNS, strict=True)), *rows]
        widths = {column: max(len(line[column]) for line in lines) for column in COLUMNS}
        for line in lines:
            cells = [line[column].ljust(widths[column]) for column in COLUMNS]
            self.stdout.write("  ".join(cells).rstrip())


def _row(item: RegisteredTool) -> dict[str, str]:
    reads = item.tier is Tier.READ_ONLY
    return {
        "tool": item.name,
        "tier": item.tier.value,
        "dispatch": "eager" if reads else "speculative",
        "consent": "a person, always" if item.tier is Tier.IRREVERSIBLE else "none",
        "undo": _undo(item),
        "look-up": "not needed" if reads else ("yes" if item.has_lookup else "a person answers"),
    }


def _undo(item: RegisteredTool) -> str:
    if item.tier is Tier.READ_ONLY:
        return "nothing to undo"
    if item.tier is Tier.IRREVERSIBLE:
        return "cannot be undone"
    return "one click" if item.tier is Tier.REVERSIBLE else "by a person's decision"
