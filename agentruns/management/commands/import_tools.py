"""`manage.py import_tools mcp|openapi …`: take tools from a server or a document, or look again."""

import argparse
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from agentruns.imports import bring_in
from tools.imports import catalogue, differences, hints, sources
from tools.imports.catalogue import Line, Plan
from tools.imports.models import ToolSource
from tools.imports.offers import ImportProblem

EXAMPLES = """
examples:
  manage.py import_tools mcp https://acme.example/mcp --name acme --header-env Authorization=ACME
  manage.py import_tools mcp --stdio "python server.py" --name local --env TOKEN=LOCAL_TOKEN
  manage.py import_tools openapi https://shop.example/openapi.json --name shop --dry-run

Tools arrive disabled: an admin tags each, and enables it. The same command again looks again: what
is as it was keeps its tag, and what has changed is disabled. Exits 1 if nothing could be imported.
"""


class Command(BaseCommand):
    help = "Import tools from an MCP server or an OpenAPI document. They arrive disabled."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        kwargs["formatter_class"] = argparse.RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, epilog=EXAMPLES, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, metavar="mcp|openapi")
        mcp = kinds.add_parser("mcp", help="from an MCP server")
        where = mcp.add_mutually_exclusive_group(required=True)
        where.add_argument("address", nargs="?", help="its address (streamable HTTP)")
        where.add_argument("--stdio", metavar="COMMAND", help="the program to start instead")
        openapi = kinds.add_parser("openapi", help="from an OpenAPI document, 3.0 or 3.1")
        openapi.add_argument("address", help="its address, or a file (JSON or YAML)")
        openapi.add_argument("--base-url", default="", help="where to send, if not its own server")
        for each in (mcp, openapi):
            each.add_argument("--name", required=True, help="what its tools’ names begin with")
            each.add_argument(
                *("--header-env", "--env"),
                dest="secrets",
                action="append",
                default=[],
                metavar="HEADER=VARIABLE",
                help="a header (or a variable of the program) and the variable with its value",
            )
            each.add_argument("--dry-run", action="store_true", help="look, and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            source = _source(options)
            sources.check(source, by_web=False)
            catalogue.check_name(source.pk)
            for name in sorted(set(source.secrets.values()) - set(os.environ)):
                self.stderr.write(f"The environment has no {name} here; the workers need it.")
            listing = sources.look(source)
            if options["dry_run"]:
                done = catalogue.plan(source, listing)
            else:
                done = bring_in(source, listing, by=None)
        except ImportProblem as error:
            raise CommandError(str(error)) from error
        self._report(source, done, is_dry=options["dry_run"])

    def _report(self, source: ToolSource, done: Plan, *, is_dry: bool) -> None:
        lines = [("tool", "now", "says of itself"), *map(_cells, done.lines)]
        widths = [max(len(line[n]) for line in lines) for n in range(2)]
        for name, fate, said in lines:
            self.stdout.write(f"{name.ljust(widths[0])}  {fate.ljust(widths[1])}  {said}".rstrip())
        for line in done.lines:
            if line.changes:
                said = differences.in_words(line.changes)
                self.stdout.write(f"{line.name}: disabled. {said}")
        for refused in done.refused:
            self.stderr.write(f"not taken: {refused.remote_name}: {refused.why}")
        if source.base_url:
            self.stdout.write(f"Calls go to {source.base_url}.")
        new = len(done.named("new", "changed", "back"))
        self.stdout.write(
            "Nothing was changed: this was a look."
            if is_dry
            else f"{new} disabled until an admin has looked at each, and tagged it."
        )


def _cells(line: Line) -> tuple[str, str, str]:
    said = hints.in_words(line.offer.hints) if line.offer else []
    return line.name, line.fate, ", ".join(said) or "–"


def _source(options: dict[str, Any]) -> ToolSource:
    """The source of that name, with what was given now; not saved."""
    source = ToolSource.objects.filter(pk=options["name"]).first()
    source = source or ToolSource(slug=options["name"])
    kind, address = ToolSource.Kind.MCP_HTTP, options["address"]
    if options["kind"] == "openapi":
        kind = ToolSource.Kind.OPENAPI
        source.base_url = options["base_url"] or source.base_url
        if not address.startswith(("http://", "https://")):
            address = str(Path(address).resolve())
    elif options["stdio"]:
        kind, address = ToolSource.Kind.MCP_STDIO, options["stdio"]
    if source.kind and source.kind != kind:
        said = _("“%(name)s” is of another kind here already: use another name.")
        raise ImportProblem(said % {"name": source.pk})
    source.kind, source.address = kind, address
    if options["secrets"]:
        source.secrets = sources.parsed_secrets(options["secrets"])
    return source
