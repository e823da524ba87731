"""Decisions, to read."""

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from agentruns.admin.base import ReadOnlyAdmin
from agentruns.admin.columns import moment, run_link
from review.models import Approval


@admin.register(Approval)
class ApprovalAdmin(ReadOnlyAdmin):
    run_link = run_link("call.run")
    decided = moment("decided_at", _("decided"))
    list_display = ["summary", "decision", "decided_by", "agreed", "decided", "run_link", "reason"]
    list_filter = ["verdict", "call__tool"]
    list_select_related = ["call__run", "decided_by"]
    search_fields = ["summary", "call__id", "call__run__id", "decided_by__username"]
    date_hierarchy = "decided_at"

    @display(
        description=_("decision"),
        ordering="verdict",
        label={"approved": "success", "rejected": "danger"},
    )
    def decision(self, row: Approval) -> tuple[str, str]:
        return row.verdict, row.get_verdict_display()

    @display(description=_("agreed"))
    def agreed(self, row: Approval) -> str:
        """How many have, of how many have to."""
        if row.call.consents_needed < 2:
            return "–"
        return gettext("%(given)d of %(needed)d approvals") % {
            "given": row.call.consent_count,
            "needed": row.call.consents_needed,
        }
