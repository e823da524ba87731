"""Every address of the site: the one place that knows all apps."""

from typing import Any

from django.contrib import admin
from django.urls import include, path

from agentruns.health import healthz, readyz

urlpatterns: list[Any] = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("api/", include("agentruns.api.urls")),
    path("admin/", admin.site.urls),
]

websocket_urlpatterns: list[Any] = []
