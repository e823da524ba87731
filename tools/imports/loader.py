"""Imported tools as registered ones, made from their rows when somebody asks for one."""

from tools import registry
from tools.contract import Tier
from tools.imports import known
from tools.imports.mcp import McpTool
from tools.imports.models import ImportedTool, ToolSource
from tools.imports.rest import RestTool
from tools.imports.schema import arguments
from tools.registry import RegisteredTool

TIMEOUT = 30.0  # seconds, unless the tool's policy has another


def install() -> None:
    """Have the registry find imported tools."""
    registry.look_also(find)


def find(name: str) -> RegisteredTool | None:
    """The imported tool of that name, as it was last seen; None if there is none, or it is gone."""
    if "." not in name:  # the source's name, a dot, the tool's
        return None
    if (item := known.recent(name)) is not None:
        return item
    there = ImportedTool.objects.filter(name=name, is_gone=False)
    revision = there.values_list("revision", flat=True).first()
    if revision is None:
        return None
    item = known.of_revision(name, revision)
    if item is None:
        row = there.select_related("source").first()
        item = registered(row) if row is not None else None
    if item is not None:
        known.keep(item)
    return item


def registered(row: ImportedTool) -> RegisteredTool:
    """The tool of a row, which has its source at hand."""
    made = RestTool if row.source.kind == ToolSource.Kind.OPENAPI else McpTool
    return RegisteredTool(
        name=row.name,
        tier=Tier.IRREVERSIBLE,
        args=arguments(row.name, row.schema),
        timeout=TIMEOUT,
        revision=row.revision,
        impl=made(row),
    )


def imported() -> list[RegisteredTool]:
    """Every imported tool that is still there, by name."""
    rows = ImportedTool.objects.select_related("source").filter(is_gone=False).order_by("name")
    return [registered(row) for row in rows]
