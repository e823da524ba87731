"""Runs and their ledger, to read. Only protocol/ writes them."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from agentruns.admin.base import ReadOnlyAdmin
from agentruns.admin.columns import badge, moment, run_link
from agentruns.models import (
    CallItem,
    Checkpoint,
    Grant,
    LedgerEvent,
    Output,
    Run,
    StopRequest,
    ToolCall,
)
from agentruns.page.people import names_of
from agentruns.protocol.ledger import person_id
from agentruns.states import CALL, OUTPUT, RUN


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    status_badge = badge(RUN)
    created = moment("created_at", _("created"))
    list_display = ["id", "status_badge", "agent", "owner", "epoch", "turn", "created"]
    list_filter = ["status", "agent"]
    list_select_related = ["agent", "owner"]
    search_fields = ["id", "goal", "owner__username"]
    date_hierarchy = "created_at"


@admin.register(ToolCall)
class ToolCallAdmin(ReadOnlyAdmin):
    state_badge = badge(CALL)
    run_link = run_link()
    proposed = moment("proposed_at", _("proposed"))
    list_display = ["summary", "state_badge", "tool", "tier", "reason", "run_link", "proposed"]
    list_filter = ["state", "tier", "undo_state", "tool"]
    list_select_related = ["run"]
    search_fields = ["id", "run__id", "request_id", "tool", "summary"]
    date_hierarchy = "proposed_at"
    ordering = ["-proposed_at"]


@admin.register(LedgerEvent)
class LedgerEventAdmin(ReadOnlyAdmin):
    """Append-only and chained: each event's hash covers the one before it."""

    run_link = run_link()
    recorded = moment("at", _("at"))
    list_display = ["kind", "run_link", "seq", "recorded", "who", "about", "short_hash"]
    list_filter = ["kind"]
    list_select_related = ["run", "call"]
    search_fields = ["run__id", "call__id", "kind", "actor", "hash"]
    date_hierarchy = "at"
    ordering = ["-at", "-seq"]

    @display(description=_("actor"), ordering="actor")
    def who(self, event: LedgerEvent) -> str:
        name = names_of([event.actor])[event.actor]
        return f"{event.actor} ({name})" if person_id(event.actor) else event.actor

    @display(description=_("call"))
    def about(self, event: LedgerEvent) -> str:
        return event.call.summary if event.call else "–"

    @display(description=_("hash"), ordering="hash")
    def short_hash(self, event: LedgerEvent) -> str:
        return f"{event.hash[:12]}…"


@admin.register(Output)
class OutputAdmin(ReadOnlyAdmin):
    status_badge = badge(OUTPUT)
    run_link = run_link()
    ended = moment("ended_at", _("ended"))
    list_display = ["turn", "run_link", "status_badge", "offset", "tokens_out", "ended"]
    list_filter = ["status", "finish_reason"]
    list_select_related = ["run"]
    search_fields = ["run__id"]


@admin.register(CallItem)
class CallItemAdmin(ReadOnlyAdmin):
    """The single effects of calls that have many."""

    run_link = run_link("call.run")
    landed = moment("at", _("at"))
    list_display = ["key", "position", "call", "run_link", "landed"]
    list_select_related = ["call__run"]
    search_fields = ["key", "call__id", "call__run__id"]
    ordering = ["-at"]


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnlyAdmin):
    run_link = run_link()
    kept = moment("at", _("at"))
    list_display = ["turn", "run_link", "before", "seq", "epoch", "kept"]
    list_filter = ["before"]
    list_select_related = ["run"]
    search_fields = ["run__id"]
    ordering = ["-at", "-seq"]


@admin.register(Grant)
class GrantAdmin(ReadOnlyAdmin):
    issued = moment("issued_at", _("issued"))
    revoked = moment("revoked_at", _("revoked"))
    list_display = ["run", "issued_by", "issued", "revoked"]
    list_filter = [("revoked_at", admin.EmptyFieldListFilter)]
    list_select_related = ["run", "issued_by"]
    search_fields = ["run__id", "issued_by__username"]


@admin.register(StopRequest)
class StopRequestAdmin(ReadOnlyAdmin):
    list_display = [
        "run",
        "epoch",
        "requested_by",
        "signal",
        "interrupted",
        "won_by",
        "requested_at",
        "settled_at",
    ]
    list_filter = ["signal", "interrupted", "won_by", "pending"]
    list_select_related = ["run", "requested_by"]
    search_fields = ["run__id", "reason", "requested_by__username"]
    date_hierarchy = "requested_at"
