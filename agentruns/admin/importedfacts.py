"""What the page of an imported tool says beside its policy: all of it in its source's own words."""

import json
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from tools.imports import differences, hints
from tools.imports.models import ImportedTool
from tools.models import Tool

PRE = '<pre class="max-h-96 overflow-auto text-xs" tabindex="0">{}</pre>'
LINK = '<a href="{}" class="text-primary-600 dark:text-primary-500">{}</a>'


def facts(row: Tool) -> list[tuple[str, Any]]:
    """Label and value; empty for a tool of our own code."""
    if not row.is_imported:
        return []
    there = ImportedTool.objects.select_related("source").filter(name=row.name).first()
    if there is None:
        return [(_("Comes from"), _("a source that is not here any more"))]
    source = reverse("admin:tools_toolsource_change", args=[there.source_id])
    said = ", ".join(hints.in_words(there.hints))
    found = [
        (_("Comes from"), format_html(LINK, source, there.source_id)),
        (_("Its name there"), there.remote_name),
        (_("Says that it does (unverified)"), there.description or "–"),
        (_("Says of its own risks (unverified)"), said or _("nothing")),
        (_("Its arguments"), format_html(PRE, json.dumps(there.schema, indent=2))),
    ]
    if there.details.get("path"):
        route = f"{there.details['method']} {there.source.base_url}{there.details['path']}"
        found.insert(2, (_("Its calls go to"), route))
    if not row.is_tagged:
        why = differences.in_words(there.changes)
        found.insert(0, (_("Why it is off"), why or _("No admin has tagged it yet.")))
    return found
