"""Every address of the site: the one place that knows all apps."""

from typing import Any

from django.contrib import admin
from django.urls import path

urlpatterns: list[Any] = [
    path("admin/", admin.site.urls),
]

websocket_urlpatterns: list[Any] = []
