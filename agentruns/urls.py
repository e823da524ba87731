"""Every address of the site: the one place that knows all apps."""

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.contrib import admin
from django.urls import include, path, re_path, register_converter
from django.views.i18n import set_language

from agentruns.consumers import RunConsumer
from agentruns.health import healthz, readyz
from agentruns.views import brief, run, runs, session
from agentruns.views.converters import CallId, RunId, UndoStepId

register_converter(RunId, "run")
register_converter(CallId, "call")
register_converter(UndoStepId, "undo_step")

urlpatterns: list[Any] = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("api/", include("compensation.urls")),
    path("api/", include("agentruns.api.urls")),
    path("admin/", admin.site.urls),
    path("sign-in/", session.sign_in, name="sign-in"),
    path("sign-out/", session.sign_out, name="sign-out"),
    path("demo/sign-in/<str:signed>/", session.demo_sign_in, name="demo-sign-in"),
    path("theme/", session.set_theme, name="set-theme"),
    path("language/", set_language, name="set_language"),
    path("", runs.runs, name="runs"),
    path("runs/new/", runs.new_run, name="new-run"),
    path("runs/<run:run_id>/", run.run, name="run"),
    path("runs/<run:run_id>/brief/", brief.run_brief, name="run-brief"),
    path("unanswered/<slug:code>/", brief.unanswered, name="unanswered"),
    path("runs/<run:run_id>/stop/", run.stop, name="run-stop"),
    path("runs/<run:run_id>/pause/", run.pause, name="run-pause"),
    path("runs/<run:run_id>/unpause/", run.unpause, name="run-unpause"),
    path("runs/<run:run_id>/resume/", run.resume, name="run-resume"),
    path("runs/<run:run_id>/budget/", run.budget, name="run-budget"),
    path("runs/<run:run_id>/undo/", run.undo, name="run-undo"),
    path("runs/<run:run_id>/undo/stop/", run.undo_stop, name="run-undo-stop"),
    path("runs/<run:run_id>/undo/<undo_step:step_id>/settle/", run.undo_settle, name="undo-settle"),
    path("runs/<run:run_id>/calls/<call:call_id>/decide/", run.decide_call, name="call-decide"),
    path("runs/<run:run_id>/calls/<call:call_id>/withhold/", run.withhold, name="call-withhold"),
    path("runs/<run:run_id>/calls/<call:call_id>/answer/", run.answer_call, name="call-answer"),
    path("runs/<run:run_id>/calls/<call:call_id>/look-up/", run.look_up_call, name="call-look-up"),
]

handler400 = "agentruns.views.problems.bad_request"
handler403 = "agentruns.views.problems.not_allowed"
handler404 = "agentruns.views.problems.not_found"
handler500 = "agentruns.views.problems.broken"

websocket_urlpatterns: list[Any] = [
    path("ws/runs/<run:run_id>/", RunConsumer.as_asgi()),
    re_path("", WebsocketDenier.as_asgi()),
]
