"""The addresses of undo under /api/."""

from django.urls import path, register_converter

from agentruns.api.urls import IdConverter
from compensation import api

register_converter(IdConverter, "undo_id")

urlpatterns = [
    path("v1/runs/<undo_id:run_id>/undo", api.UndoView.as_view(), name="api-undo"),
    path("v1/runs/<undo_id:run_id>/undo/stop", api.UndoStopView.as_view(), name="api-undo-stop"),
    path("v1/undos/<undo_id:step_id>/settle", api.UndoSettleView.as_view(), name="api-undo-settle"),
    path("v1/undos/<undo_id:step_id>/retry", api.UndoRetryView.as_view(), name="api-undo-retry"),
]
