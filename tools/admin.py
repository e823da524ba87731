"""The policy of each tool, for admins."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from tools import registry
from tools.models import TIER_LABELS, Tool


@admin.register(Tool)
class ToolAdmin(ModelAdmin):
    """Rows come from the registry: none is added or deleted here."""

    list_display = ["name", "declared", "tier", "enabled", "dispatch", "approval", "updated_at"]
    list_filter = ["tier", "enabled"]
    search_fields = ["name"]
    fields = [
        "name",
        "declared",
        "tier",
        "enabled",
        "dispatch",
        "approval",
        "auto_undo",
        "note",
        "updated_at",
        "updated_by",
    ]
    readonly_fields = ["name", "declared", "updated_at", "updated_by"]

    @admin.display(description=_("declared in code"))
    def declared(self, row: Tool) -> str:
        item = registry.get(row.name)
        return str(TIER_LABELS[item.tier] if item else _("no such tool any more"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Tool | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Tool, form: Any, change: bool) -> None:
        obj.updated_by_id = request.user.pk
        super().save_model(request, obj, form, change)
