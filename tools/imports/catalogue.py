"""What is taken from a source into the database, and what becomes of the policy of each tool.

The only writer of imported tools. A new one arrives disabled, untagged, as what cannot be undone.
One that has changed, is gone, or has come back is disabled again, and it is kept why. One that is
as it was keeps its policy.
"""

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from tools import registry
from tools.changes import REASON_LIMIT, recorded
from tools.contract import Data, Tier
from tools.imports import differences, known
from tools.imports.models import ImportedTool, ToolSource
from tools.imports.offers import ImportProblem, Listing, Offer, Refusal, local_name
from tools.models import Tool


@dataclass(frozen=True)
class Line:
    """What becomes of one tool: new, changed, back, gone or unchanged."""

    name: str
    fate: str
    offer: Offer | None
    changes: list[Data] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """What an import would do, or has done."""

    lines: list[Line]
    refused: list[Refusal]

    def named(self, *fates: str) -> list[str]:
        """The names of the tools with one of these fates."""
        return [line.name for line in self.lines if line.fate in fates]


def plan(source: ToolSource, listing: Listing) -> Plan:
    """Compare what a source offers with what is here. Reads only."""
    here = {row.name: row for row in ImportedTool.objects.filter(source_id=source.pk)}
    lines = []
    for each in listing.offers:
        name = local_name(source.pk, each.remote_name)
        lines.append(_line(name, here.pop(name, None), each, source))
    for row in here.values():
        gone = Line(row.name, "gone", None, differences.GONE)
        lines.append(Line(row.name, "unchanged", None) if row.is_gone else gone)
    return Plan(sorted(lines, key=lambda line: line.name), listing.refused)


def _line(name: str, row: ImportedTool | None, each: Offer, source: ToolSource) -> Line:
    if row is None:
        return Line(name, "new", each)
    changes = [] if row.revision == each.revision else differences.between(row, each)
    if row.is_gone:
        return Line(name, "back", each, [{"what": "back"}, *changes])
    return Line(name, "changed" if changes else "unchanged", each, changes)


def check_name(slug: str) -> None:
    """Refuse a name for a source that begins the names of our own tools. Raises ImportProblem."""
    taken = {item.name.partition(".")[0] for item in registry.all()}
    if slug in taken:
        said = _("“%(name)s” is how some of our own tools begin: choose another name.")
        raise ImportProblem(said % {"name": slug})


def take(source: ToolSource, listing: Listing, *, by: Any) -> Plan:
    """Write what a source offers now, and what follows for each tool's policy. Atomic. Raises
    ImportProblem for a name that is taken.
    """
    check_name(source.pk)
    with transaction.atomic():
        _hold(source)
        source.base_url = listing.base_url
        source.says_of_itself = listing.says_of_itself
        source.imported_at = timezone.now()
        source.problem = ""
        source.save()
        done = plan(source, listing)
        for line in done.lines:
            if line.fate != "unchanged":
                _write(source, line, by=by)
    known.forget()
    return done


def _hold(source: ToolSource) -> None:
    """Have its row: of two who look at the same time, as with a double click, the second waits
    here. Raises ImportProblem for a new one whose name somebody else took meanwhile.
    """
    is_new = source._state.adding
    ToolSource.objects.bulk_create([source], ignore_conflicts=True)
    there = ToolSource.objects.select_for_update().get(pk=source.pk)
    if is_new and _identity(there) != _identity(source):
        raise ImportProblem(
            _("There is a source of that name already: look at it again on its own page.")
        )


def _identity(source: ToolSource) -> tuple[str, str, Data]:
    return source.kind, source.address, source.secrets


def note_problem(source: ToolSource, problem: str) -> None:
    """It could not be looked at. Its tools stay as they are: each call looks for itself."""
    ToolSource.objects.filter(pk=source.pk).update(problem=problem[:2000])


def take_changed(name: str, offer: Offer | None) -> None:
    """What a call found when it looked at its tool: it is not what was allowed, or is gone. Written
    down and disabled, for an admin to look at.
    """
    row = ImportedTool.objects.select_related("source").get(pk=name)
    line = (
        Line(name, "gone", None, differences.GONE)
        if offer is None
        else _line(name, row, offer, row.source)
    )
    if line.fate != "unchanged":
        _write(row.source, line, by=None)
    known.forget()


def _write(source: ToolSource, line: Line, *, by: Any) -> None:
    """One tool and its policy, in one transaction, with the reason in its history."""
    said = _("Imported from %(source)s") % {"source": source.pk}
    if line.changes:
        said = _("Disabled: %(changes)s") % {"changes": differences.in_words(line.changes)}
    with recorded(by=by, reason=said[:REASON_LIMIT]):
        if line.offer is None:
            ImportedTool.objects.filter(pk=line.name).update(is_gone=True, changes=line.changes)
            _close(line.name, by, revision=None)
            return
        ImportedTool.objects.update_or_create(
            name=line.name, defaults={"source": source, **_columns(line.offer, line.changes)}
        )
        if line.fate == "new":
            _policy(source, line)
        _close(line.name, by, revision=line.offer.revision)


def _columns(offer: Offer, changes: list[Data]) -> Data:
    names = ("remote_name", "title", "description", "schema", "hints", "details", "revision")
    columns = {name: getattr(offer, name) for name in names}
    return {**columns, "changes": changes, "is_gone": False}


def _policy(source: ToolSource, line: Line) -> None:
    assert line.offer is not None
    Tool.objects.get_or_create(
        name=line.name,
        defaults={
            "tier": Tier.IRREVERSIBLE.value,
            "enabled": False,
            "is_tagged": False,
            "source": Tool.Source.MCP if source.is_mcp else Tool.Source.OPENAPI,
            "imported_revision": line.offer.revision,
        },
    )


def _close(name: str, by: Any, *, revision: str | None) -> None:
    """Disabled and untagged, whatever it was: as if it had just arrived."""
    Tool.objects.filter(name=name).update(
        tier=Tier.IRREVERSIBLE.value,
        enabled=False,
        is_tagged=False,
        imported_revision=F("imported_revision") if revision is None else revision,
        updated_by=by,
        updated_at=timezone.now(),  # who has its page open, has to look again
    )
