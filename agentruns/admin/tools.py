"""The policy of each tool, for admins. What they change holds for what waits already."""

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.admin import ModelAdmin
from unfold.decorators import display

from agentruns.admin.columns import to_the_minute
from agentruns.admin.toolforms import TierForm, ToolForm, declared_words
from agentruns.admin.toolpage import page_of
from agentruns.page.words import name_of
from agentruns.protocol.recheck import recheck_tool
from tools import policy, registry
from tools.changes import recorded, set_tier
from tools.contract import Tier
from tools.models import Tool

TIER_COLOURS = {
    Tier.READ_ONLY: "",
    Tier.REVERSIBLE: "info",
    Tier.COMPENSABLE: "warning",
    Tier.IRREVERSIBLE: "danger",
}


@admin.register(Tool)
class ToolAdmin(ModelAdmin):
    """Rows come from the registry: none is added or deleted here."""

    form = ToolForm
    actions = ["set_the_tier"]
    list_display = ["name", "title", "tier_badge", "declared", "enabled", "consent"]
    list_filter = ["tier", "enabled", "source"]
    list_select_related = ["approver_group"]
    search_fields = ["name"]
    change_form_outer_before_template = "admin/tools/tool/counts.html"
    change_form_outer_after_template = "admin/tools/tool/calls_and_history.html"
    readonly_fields = ["name", "last_changed"]
    fieldsets = [
        (None, {"fields": ["name", "last_changed", "tier", "enabled", "note"]}),
        (
            gettext_lazy("Consent"),
            {"fields": ["approvals_needed", "approver_group"]},
        ),
        (
            gettext_lazy("How it may act"),
            {"fields": ["dispatch", "time_limit", "rate_limit", "auto_undo"]},
        ),
        (gettext_lazy("Why"), {"fields": ["reason", "seen"]}),
    ]

    @display(description=gettext_lazy("what it does"))
    def title(self, row: Tool) -> str:
        item = registry.get(row.name)
        return item.title if item else "–"

    @display(
        description=gettext_lazy("tier"),
        ordering="tier",
        label={tier.value: colour for tier, colour in TIER_COLOURS.items()},
    )
    def tier_badge(self, row: Tool) -> tuple[str, str]:
        words = row.get_tier_display() if row.is_tagged else _("no tier yet")
        return row.tier if row.is_tagged else "", str(words)

    @admin.display(description=gettext_lazy("declared in code"))
    def declared(self, row: Tool) -> str:
        return declared_words(row)

    @admin.display(description=gettext_lazy("approval"))
    def consent(self, row: Tool) -> str:
        people = policy.combined(row.name, row).approvals
        item = registry.get(row.name)
        if not people:
            asks = item is not None and item.asks_by_arguments
            return _("1 person, for some calls") if asks else _("nobody")
        said = ngettext("%(n)d person", "%(n)d people", people) % {"n": people}
        return f"{said}: {row.approver_group.name}" if row.approver_group else said

    @display(description=gettext_lazy("last changed"))
    def last_changed(self, row: Tool) -> str:
        words = {"time": to_the_minute(row.updated_at), "name": name_of(row.updated_by)}
        return _("%(time)s by %(name)s") % words if row.updated_by else words["time"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Tool | None = None) -> bool:
        return False

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"user": request.user})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        shown = {"tool": SimpleLazyObject(partial(page_of, row, request.user))} if row else {}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | shown)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Its page has who changed what, and why, at the end."""
        return redirect("admin:tools_tool_change", object_id)

    def save_model(self, request: HttpRequest, obj: Tool, form: Any, change: bool) -> None:
        obj.updated_by_id = request.user.pk
        obj.is_tagged = True  # the tier was chosen, or left, on the form
        with recorded(by=request.user, reason=form.cleaned_data["reason"]):
            super().save_model(request, obj, form, change)
        # Each run in a transaction of its own, and none of them while this one is open.
        transaction.on_commit(partial(_recheck, request, [obj.name]))

    @admin.action(
        description=gettext_lazy("Set the tier of the chosen tools…"), permissions=["change"]
    )
    def set_the_tier(self, request: HttpRequest, queryset: QuerySet[Tool]) -> HttpResponse | None:
        """Ask which and why; then for all of them or none."""
        rows = list(queryset.order_by("name"))
        asked = request.POST if "apply" in request.POST else None
        form = TierForm(asked, rows=rows, user=request.user)
        if asked is not None and form.is_valid():
            _set_tier(request, form)
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": _("Set the tier of the chosen tools"),
            "opts": self.model._meta,
            "rows": [(row, declared_words(row)) for row in rows],
            "form": form,
        }
        return TemplateResponse(request, "admin/tools/tool/set_tier.html", context)


def _set_tier(request: HttpRequest, form: TierForm) -> None:
    names = [row.name for row in form.rows]
    changed = set_tier(
        names, form.cleaned_data["tier"], by=request.user, reason=form.cleaned_data["reason"]
    )
    said = ngettext("%(n)d tool was changed.", "%(n)d tools were changed.", len(changed))
    messages.success(request, said % {"n": len(changed)})
    _recheck(request, changed)


def _recheck(request: HttpRequest, names: list[str]) -> None:
    """Hold what waits against the new rules, and say what became of it."""
    done = [recheck_tool(name, by=request.user) for name in names]
    if denied := sum(each.denied for each in done):
        said = ngettext(
            "%(n)d call that was waiting does not go out: the new rules do not let it.",
            "%(n)d calls that were waiting do not go out: the new rules do not let them.",
            denied,
        )
        messages.warning(request, said % {"n": denied})
    if raised := sum(each.raised for each in done):
        said = ngettext(
            "%(n)d call that waits for approval now waits for more people.",
            "%(n)d calls that wait for approval now wait for more people.",
            raised,
        )
        messages.info(request, said % {"n": raised})
    if left := sum(each.left for each in done):
        said = ngettext(
            "%(n)d run was busy: its calls are checked when their turn comes.",
            "%(n)d runs were busy: their calls are checked when their turn comes.",
            left,
        )
        messages.warning(request, said % {"n": left})
