"""RFC 9457: whatever goes wrong is told as problem+json, and with nothing of our insides."""

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from agentruns.api import views
from tests.agentruns.api.asking import JSON, get, is_problem, post
from tests.agentruns.api.conftest import Api

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "path",
    [
        *("/api/", "/api/v2/runs", "/api/v1/runs/", "/api/v1/runs/run%00x", "/api/v1/runs/a/b"),
        *("/api/v1/runs/%0A", "/api/%0a", "/api/v1/runs/r%0D%0A/cancel", "/api/v1/runs/a%E2%80%A8"),
    ],
)
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_an_unknown_path(path: str, method: str) -> None:
    is_problem(getattr(Client(), method)(path), 404, "not_found")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "",
        "no json",
        '{"goal": NaN}',
        "[" * 200_000,
        '"\\',
        b"\xff\xfe",
        '{"n": 1' + "0" * 5000,
    ],
)
def test_a_body_that_is_not_json(api: Api, owner: User, text: Any) -> None:
    answer = api(owner).post("/api/v1/runs", text, content_type=JSON)

    if text == "":
        is_problem(answer, 400, "bad_input")
    else:
        is_problem(answer, 400, "malformed_body")


def test_a_body_that_is_too_large(api: Api, owner: User) -> None:
    body = {"agent": "tester", "goal": "x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)}

    is_problem(post(api(owner), "runs", body), 413, "body_too_large")


def test_a_body_that_is_a_form(api: Api, owner: User) -> None:
    answer = api(owner).post("/api/v1/runs", {"goal": "x"})

    is_problem(answer, 415, "unsupported_media_type")


def test_a_method_that_there_is_not(api: Api, owner: User) -> None:
    answer = api(owner).put("/api/v1/runs")

    is_problem(answer, 405, "method_not_allowed")
    assert "POST" in answer["Allow"]


def test_a_form_that_the_answer_does_not_come_in(api: Api, owner: User) -> None:
    answer = api(owner).get("/api/v1/runs", headers={"Accept": "text/csv"})

    is_problem(answer, 406, "not_acceptable")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(OperationalError("gone"), 503, "database_away"), (KeyError("a secret"), 500, "error")],
)
def test_what_nobody_foresaw(
    api: Api,
    owner: User,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
    code: str,
) -> None:
    def broken(*args: Any) -> None:
        raise error

    monkeypatch.setattr(views.rights, "visible_runs", broken)

    answer = get(api(owner), "runs")

    is_problem(answer, status, code)
    assert "a secret" not in answer.content.decode()


def test_the_sentence_comes_in_the_askers_language(api: Api, owner: User) -> None:
    answer = api(owner).get("/api/v1/runs/run_0", headers={"Accept-Language": "zh-hans"})

    assert answer["Content-Language"] == "zh-hans"
