"""Import tools on a page: say where they are, look at what they say of themselves, take them."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from agentruns.admin.columns import to_the_minute
from agentruns.imports import bring_in
from tools.imports import catalogue, differences, hints, sources
from tools.imports.catalogue import Line, Plan
from tools.imports.models import SLUG, ImportedTool, ToolSource
from tools.imports.offers import ImportProblem, Listing
from tools.models import Tool

FATES = {
    "new": gettext_lazy("new"),
    "changed": gettext_lazy("changed"),
    "back": gettext_lazy("there again"),
    "gone": gettext_lazy("gone"),
    "unchanged": gettext_lazy("as it was"),
}


class SourceForm(forms.Form):
    """Where the tools are, and which variables hold what the server wants to be told."""

    kind = forms.ChoiceField(
        label=gettext_lazy("Kind"),
        choices=ToolSource.Kind.choices,
        widget=UnfoldAdminSelectWidget,
    )
    address = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=1000,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy(
            "Where the server or the document is. Or the program to start: one of those that are "
            "listed in MCP_STDIO_COMMANDS."
        ),
    )
    slug = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=20,
        validators=[SLUG],
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy("The names of its tools begin with it, as in “acme.search”."),
    )
    base_url = forms.CharField(
        label=gettext_lazy("Base address"),
        max_length=1000,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy(
            "Of an OpenAPI document: where calls go. Empty: the first server that it names."
        ),
    )
    secrets = forms.CharField(
        label=gettext_lazy("Secrets"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text=gettext_lazy(
            "One per line: a header, “=”, and the environment variable with its value, which is "
            "one of those listed in TOOL_SECRETS. The value itself is not kept."
        ),
    )

    def source(self) -> ToolSource:
        """A source that is not saved yet, fit to be looked at. Raises ImportProblem."""
        data = self.cleaned_data
        if ToolSource.objects.filter(pk=data["slug"]).exists():
            said = _("There is a source of that name already: look at it again on its own page.")
            raise ImportProblem(said)
        lines = [line for line in data["secrets"].splitlines() if line.strip()]
        source = ToolSource(
            slug=data["slug"],
            kind=data["kind"],
            address=data["address"].strip(),
            base_url=data["base_url"].strip(),
            secrets=sources.parsed_secrets(lines),
        )
        sources.check(source, by_web=True)
        catalogue.check_name(source.pk)
        return source


@admin.register(ToolSource)
class ToolSourceAdmin(ModelAdmin):
    """A source is added by an import, and read ever after: what it offers, it says itself."""

    list_display = ["slug", "kind", "address", "tools", "imported_at", "is_well"]
    search_fields = ["slug", "address"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolSource]:
        """With how many tools each has, and how many of them are enabled."""
        enabled = Tool.objects.filter(enabled=True).values("name")
        there = Q(tools__is_gone=False)
        rows: QuerySet[ToolSource] = super().get_queryset(request)
        return rows.annotate(
            there=Count("tools", filter=there),
            enabled=Count("tools", filter=there & Q(tools__name__in=enabled)),
        )

    @admin.display(description=gettext_lazy("tools"))
    def tools(self, row: Any) -> str:
        return _("%(enabled)d of %(all)d enabled") % {"enabled": row.enabled, "all": row.there}

    @admin.display(description=gettext_lazy("no problem"), boolean=True)
    def is_well(self, row: ToolSource) -> bool:
        return not row.problem

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[Any]:
        again = path(
            "<path:object_id>/again/",
            self.admin_site.admin_view(require_POST(self.look_again)),
            name="tools_toolsource_again",
        )
        return [again, *super().get_urls()]

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask where; show what would come; take it, if it is still what was shown."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = SourceForm(request.POST if request.method == "POST" else None)
        context: dict[str, Any] = {"form": form, "title": _("Import tools")}
        if form.is_bound and form.is_valid():
            try:
                source = form.source()
                listing = sources.look(source)
            except ImportProblem as error:
                form.add_error(None, str(error))
            else:
                if request.POST.get("revision") == listing.revision:
                    return self._taken(request, source, listing)
                if request.POST.get("revision"):
                    messages.warning(
                        request, _("It has changed since you looked: look at it again.")
                    )
                context |= _preview(source, listing)
        return self._page(request, "import", context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None or not self.has_view_permission(request, row):
            return super().change_view(request, object_id, form_url, extra_context)
        context = {"title": row.slug, "source": row, "facts": _facts(row), "tools": _tools_of(row)}
        context["may_look"] = self.has_add_permission(request)
        return self._page(request, "source", context)

    def look_again(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Import anew: what is as it was keeps its tag, and what has changed is disabled."""
        row = self.get_object(request, object_id)
        if row is None or not self.has_add_permission(request):
            raise PermissionDenied
        try:
            listing = sources.look(row)
        except ImportProblem as error:
            catalogue.note_problem(row, str(error))
            messages.error(request, str(error))
            return HttpResponseRedirect(_link(row))
        return self._taken(request, row, listing)

    def _taken(
        self, request: HttpRequest, source: ToolSource, listing: Listing
    ) -> HttpResponseRedirect:
        _say(request, bring_in(source, listing, by=request.user))
        return HttpResponseRedirect(_link(source))

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "opts": self.model._meta, **context}
        return TemplateResponse(request, f"admin/tools/toolsource/{name}.html", context)


def _link(source: ToolSource) -> str:
    return reverse("admin:tools_toolsource_change", args=[source.pk])


def _preview(source: ToolSource, listing: Listing) -> dict[str, Any]:
    """What would come, as the page wants it."""
    done = catalogue.plan(source, listing)
    return {
        "listing": listing,
        "lines": [_shown(line) for line in done.lines],
        "refused": listing.refused,
    }


def _shown(line: Line) -> dict[str, Any]:
    said = hints.in_words(line.offer.hints) if line.offer else []
    return {"line": line, "fate": FATES[line.fate], "says": said}


def _facts(row: ToolSource) -> list[tuple[str, Any]]:
    secrets = ", ".join(f"{where} = ${name}" for where, name in row.secrets.items())
    facts = [
        (_("Kind"), row.get_kind_display()),
        (_("Address"), row.address),
        (_("Says of itself (unverified)"), row.says_of_itself or "–"),
        (_("Looked at"), to_the_minute(row.imported_at)),
        (_("Secrets"), secrets or "–"),
    ]
    if row.base_url:
        facts.append((_("Calls go to"), row.base_url))
    if row.problem:
        facts.append((_("Last problem"), row.problem))
    return facts


def _tools_of(row: ToolSource) -> list[dict[str, Any]]:
    tools = list(ImportedTool.objects.filter(source=row))
    policies = Tool.objects.in_bulk([each.name for each in tools])
    return [
        {
            "name": each.name,
            "link": reverse("admin:tools_tool_change", args=[each.name]),
            "state": _state(each, policies.get(each.name)),
            "says": hints.in_words(each.hints),
        }
        for each in tools
    ]


def _state(each: ImportedTool, policy: Tool | None) -> str:
    if each.is_gone:
        return _("gone")
    if policy is not None and policy.enabled:
        return _("enabled: %(tier)s") % {"tier": policy.get_tier_display()}
    if policy is not None and policy.is_tagged:
        return _("switched off")
    why = differences.in_words(each.changes)
    return why or _("waits for an admin to look at it")


def _say(request: HttpRequest, done: Plan) -> None:
    """What has come of it, as messages on the next page."""
    new, changed = len(done.named("new", "back")), done.named("changed", "gone")
    if new:
        said = ngettext(
            "%(n)d tool has arrived, switched off: look at it, and tag it.",
            "%(n)d tools have arrived, switched off: look at each, and tag it.",
            new,
        )
        messages.success(request, said % {"n": new})
    if changed:
        said = _("Switched off, because they are not what they were: %(names)s.")
        messages.warning(request, said % {"names": ", ".join(changed)})
    if not new and not changed:
        messages.info(request, _("Everything is as it was."))
    for refused in done.refused[:5]:
        messages.warning(request, f"{refused.remote_name}: {refused.why}")
