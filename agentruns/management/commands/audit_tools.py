"""What each tool promises, what an admin has made of it, and how fast it sends."""

import json
from dataclasses import dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from agentruns.speed import Speed, speed_of
from tools import registry
from tools.checks import gaps
from tools.contract import Tier
from tools.imports import audit
from tools.imports.loader import imported
from tools.policy import Policy, effective
from tools.registry import RegisteredTool

UNKNOWN = "–"


@dataclass(frozen=True)
class Audited:
    """One tool; `policy` and `speed` are None where there is no database to ask."""

    tool: RegisteredTool
    policy: Policy | None
    speed: Speed | None

    @property
    def tier(self) -> Tier:
        return self.policy.tier if self.policy else self.tool.tier


class Command(BaseCommand):
    help = (
        "Print what each registered tool promises, what the admins have set, and how long it takes "
        "from the gate until it sends, by the ledger. Without a database: as the code declares it. "
        "Exits 1 if a tool has a gap."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        audited = self._audited()
        rows = [_row(each) for each in audited]
        found = {each.tool.name: gaps(each.tool) for each in audited}
        if audited[0].policy is not None:
            for name, missing in audit.gaps().items():
                found[name] = [*found.get(name, []), *missing]
        if options["json"]:
            report = [row | {"gaps": found[row["tool"]]} for row in rows]
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
        else:
            self._table([row | {"missing": str(len(found[row["tool"]]) or "")} for row in rows])
        missing = [gap for each in found.values() for gap in each]
        if missing:
            raise CommandError("\n".join(missing))

    def _audited(self) -> list[Audited]:
        tools = registry.all()
        try:
            everything = [*tools, *imported()]
            return [Audited(item, effective(item.name), speed_of(item.name)) for item in everything]
        except Error:
            self.stderr.write("No database could be asked: this is what the code declares.")
            return [Audited(item, None, None) for item in tools]

    def _table(self, rows: list[dict[str, str]]) -> None:
        lines = [{name: name for name in rows[0]}, *rows]
        widths = {name: max(len(line[name]) for line in lines) for name in rows[0]}
        for line in lines:
            cells = [line[name].ljust(width) for name, width in widths.items()]
            self.stdout.write("  ".join(cells).rstrip())


def _row(each: Audited) -> dict[str, str]:
    item, reads = each.tool, each.tier is Tier.READ_ONLY
    return {
        "tool": item.name,
        "tier": each.tier.value,
        "enabled": UNKNOWN if each.policy is None else ("yes" if each.policy.enabled else "no"),
        "dispatch": _dispatch(each),
        "consent": _consent(each),
        "look-up": "not needed" if reads else ("yes" if item.has_lookup else "a person answers"),
        "may act late": _horizon(item, each.tier),
        "undo": _undo(item, each.tier),
        "limit": f"{each.policy.timeout if each.policy else item.timeout:g} s",
        "gate to send": _speed(each.speed),
    }


def _dispatch(each: Audited) -> str:
    is_eager = each.policy.eager if each.policy else each.tier is Tier.READ_ONLY
    return "eager" if is_eager else "speculative"


def _consent(each: Audited) -> str:
    is_last = each.tier is Tier.IRREVERSIBLE
    people = each.policy.approvals if each.policy else int(is_last)
    if not people:
        return "a person, by its arguments" if each.tool.asks_by_arguments else "none"
    return "a person, always" if people == 1 else f"{people} people, always"


def _horizon(item: RegisteredTool, tier: Tier) -> str:
    """For how long after a doubt “it is not there” is not believed."""
    if tier is Tier.READ_ONLY:
        return "never"
    return f"for {item.horizon:g} s" if item.horizon else "never"


def _undo(item: RegisteredTool, tier: Tier) -> str:
    if tier is Tier.READ_ONLY:
        return "nothing to undo"
    if tier is Tier.IRREVERSIBLE or not item.has_compensate:
        return "cannot be undone"
    return "one click" if tier is Tier.REVERSIBLE else "by a person's decision"


def _speed(speed: Speed | None) -> str:
    if speed is None:
        return "not measured"
    return f"{speed.p50:g} ms, 95%: {speed.p95:g}, worst: {speed.worst:g} ({speed.calls})"
