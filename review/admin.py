"""Decisions, to read."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from agentruns.admin import ReadOnlyAdmin
from review.models import Approval


@admin.register(Approval)
class ApprovalAdmin(ReadOnlyAdmin):
    list_display = ["summary", "decision", "decided_by", "decided_at", "call", "reason"]
    list_filter = ["verdict", "call__tool"]
    list_select_related = ["call", "decided_by"]
    search_fields = ["summary", "call__id", "call__run__id", "decided_by__username"]
    date_hierarchy = "decided_at"

    @display(
        description=_("decision"),
        ordering="verdict",
        label={"approved": "success", "rejected": "danger"},
    )
    def decision(self, row: Approval) -> tuple[str, str]:
        return row.verdict, row.get_verdict_display()
