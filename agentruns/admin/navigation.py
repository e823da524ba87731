"""The admin's side bar: what this product is about first, accounts last."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

GROUPS: list[tuple[Any, list[str]]] = [
    (
        _("Runs"),
        [
            "agentruns.Run",
            "agentruns.ToolCall",
            "agentruns.CallItem",
            "agentruns.StopRequest",
            "agentruns.Checkpoint",
            "agentruns.LedgerEvent",
            "agentruns.Output",
            "agentruns.Grant",
        ],
    ),
    (_("People deciding"), ["review.Approval", "compensation.Compensation"]),
    (_("What agents may do"), ["agentruns.Agent", "tools.Tool", "tools.ToolSource"]),
    (
        _("Accounts"),
        [
            "auth.User",
            "auth.Group",
            "knox.AuthToken",
            "axes.AccessAttempt",
            "axes.AccessFailureLog",
            "axes.AccessLog",
        ],
    ),
]


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """The tables that this person may see, as unfold wants them."""
    groups = [
        {"title": title, "items": [item for name in names if (item := _item(request, name))]}
        for title, names in GROUPS
    ]
    return [group for group in groups if group["items"]]


def icon(request: HttpRequest) -> str:
    return static("agentruns/icon.svg")


def _item(request: HttpRequest, name: str) -> dict[str, Any] | None:
    kind = apps.get_model(name)
    if not admin.site.get_model_admin(kind).has_view_permission(request):
        return None
    meta = kind._meta
    link = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    return {"title": meta.verbose_name_plural.capitalize(), "link": link}
