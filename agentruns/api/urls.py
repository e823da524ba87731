"""The addresses under /api/."""

from django.urls import path, re_path, register_converter
from drf_spectacular.views import SpectacularAPIView

from agentruns.api import views
from agentruns.api.docs import DocsView


class IdConverter:
    """One of our ids; anything else is an address that does not exist."""

    regex = "[A-Za-z0-9_-]{1,40}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(IdConverter, "id")

urlpatterns = [
    path("v1/auth/token", views.TokenView.as_view(), name="api-token"),
    path("v1/runs", views.RunsView.as_view(), name="api-runs"),
    path("v1/runs/<id:run_id>", views.RunView.as_view(), name="api-run"),
    path("v1/runs/<id:run_id>/cancel", views.CancelView.as_view(), name="api-cancel"),
    path("v1/runs/<id:run_id>/pause", views.PauseView.as_view(), name="api-pause"),
    path("v1/runs/<id:run_id>/unpause", views.UnpauseView.as_view(), name="api-unpause"),
    path("v1/runs/<id:run_id>/resume", views.ResumeView.as_view(), name="api-resume"),
    path("v1/runs/<id:run_id>/budget", views.BudgetView.as_view(), name="api-budget"),
    path("v1/runs/<id:run_id>/ledger", views.LedgerView.as_view(), name="api-ledger"),
    path("v1/runs/<id:run_id>/snapshot", views.SnapshotView.as_view(), name="api-snapshot"),
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs/", DocsView.as_view(), name="api-docs"),
    re_path("", views.unknown_path),
]
