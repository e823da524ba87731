"""A body is JSON in UTF-8, each member once, and none that the operation does not know."""

from typing import Any

import pytest
import yaml
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from agentruns.models import Agent
from tests.agentruns.api.asking import JSON, get, is_problem, post
from tests.agentruns.api.conftest import Api
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.steps import Steps

WANTED = {"agent": "tester", "goal": "Tidy the inbox."}


@pytest.mark.parametrize(
    "text",
    [
        '{"agent": "tester", "goal": "this", "goal": "that"}',
        '{"agent": "tester", "goal": "this", "g\\u006fal": "this"}',
        '{"call_ids": [{"a": 1, "a": 1}]}',
    ],
)
@pytest.mark.django_db
def test_a_member_that_comes_twice_is_refused(api: Api, owner: User, text: str) -> None:
    answer = api(owner).post("/api/v1/runs", text, content_type=JSON)
    is_problem(answer, 400, "malformed_body")


def test_a_member_that_is_not_known_is_refused(agent: Agent, api: Api, owner: User) -> None:
    answer = post(api(owner), "runs", WANTED | {"owner": "ada"})
    problem = is_problem(answer, 400, "bad_input")
    said = {"field": "owner", "message": "There is no such member.", "code": "unknown"}
    assert problem["errors"] == [said]
    assert post(api(owner), "runs", WANTED).status_code == 201


def test_a_stop_is_not_refused_for_what_it_does_not_know(
    steps: Steps, api: Api, owner: User
) -> None:
    answer = post(api(owner), f"runs/{steps.start().pk}/cancel", {"source": "a newer client"})
    assert answer.status_code == 202


@pytest.mark.parametrize("verb", ["cancel", "resume", "pause"])
@pytest.mark.parametrize(
    "text", ['{"pending": "\\ud800"}', '{"frozen": "\\ud800"}', '{"\\ud800": 1}']
)
def test_half_a_sign_that_an_error_repeats_is_no_error_of_ours(
    steps: Steps, api: Api, owner: User, verb: str, text: str
) -> None:
    path = f"/api/v1/runs/{steps.start().pk}/{verb}"
    assert api(owner).post(path, text, content_type=JSON).status_code in (202, 400, 409)


CHARSETS = ["utf-7", "idna", "utf-16", "latin-1", "punycode", "no-such", "zlib", '"utf-7"']


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.django_db
def test_another_charset_is_refused_and_not_decoded(
    api: Api, browser: Browser, owner: User, charset: str, method: str
) -> None:
    send = {"content_type": f"{JSON}; charset={charset}"}
    answer = api(owner).generic(method.upper(), "/api/v1/runs", "{}", **send)
    is_problem(answer, 415, "unsupported_media_type")
    for kind in ("text/plain", "multipart/form-data; boundary=x"):
        send["content_type"] = f"{kind}; charset={charset}"
        answer = browser(owner).generic(method.upper(), "/", "--x--", **send)
        assert answer.status_code == 415
        assert "has to be in UTF-8" in answer.content.decode()


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", '"utf-8"'])
def test_utf8_may_be_said(agent: Agent, api: Api, owner: User, charset: str) -> None:
    kind = f"{JSON}; charset={charset}"
    answer = api(owner).post("/api/v1/runs", WANTED, content_type=kind)
    assert answer.status_code == 201


@pytest.mark.parametrize(
    "query",
    [
        *({"limit": each} for each in ("-1", "0", "abc", "201", "1.5", "null")),
        *({"offset": each} for each in ("-1", "null", "9" * 20, "1e3")),
    ],
)
@pytest.mark.django_db
def test_a_page_that_cannot_be_is_refused(api: Api, owner: User, query: dict[str, str]) -> None:
    problem = is_problem(get(api(owner), "runs", **query), 400, "bad_input")
    assert [each["field"] for each in problem["errors"]] == list(query)


@pytest.mark.django_db
def test_a_page_that_can_be_is_given(api: Api, owner: User) -> None:
    for query in ({}, {"limit": 200}, {"limit": 1, "offset": 2**63 - 1}):
        assert get(api(owner), "runs", **query).status_code == 200


@pytest.mark.django_db
def test_the_document_says_so() -> None:
    document = yaml.safe_load(Client().get("/api/schema/").content)
    shapes, operations = document["components"]["schemas"], {}
    for path in document["paths"].values():
        operations |= {each["operationId"]: each for each in path.values()}
    bodies = {
        name: shapes[each["requestBody"]["content"][JSON]["schema"]["$ref"].split("/")[-1]]
        for name, each in operations.items()
        if "requestBody" in each
    }
    assert len(bodies) >= 7
    is_open = [name for name, body in bodies.items() if body.get("additionalProperties", True)]
    assert is_open == ["stop_run"]
    assert [text for body in bodies.values() for text in may_be_empty(body)] == []
    pages = {each["name"]: each["schema"] for each in operations["list_runs"]["parameters"]}
    assert (pages["limit"]["minimum"], pages["limit"]["maximum"]) == (1, 200)
    assert pages["offset"]["minimum"] == 0


def may_be_empty(body: dict[str, Any]) -> list[str]:
    """The texts that have to be there, of which the document does not say that they have to be."""
    texts = {name: body["properties"][name] for name in body.get("required", ())}
    return [
        name
        for name, text in texts.items()
        if text.get("type") == "string" and not text.keys() & {"minLength", "pattern", "enum"}
    ]


@pytest.mark.django_db
def test_nothing_that_is_made_for_a_person_is_kept(
    api: Api, browser: Browser, owner: User, admin: User
) -> None:
    answers = [
        *(browser(owner).get(path) for path in ("/", "/runs/new/", "/nothing/", "/api/v1/runs")),
        *(api(owner).get(path) for path in ("/api/v1/runs", "/api/v1/runs/none", "/api/nothing")),
        browser(admin).get("/admin/"),
        Client().get("/sign-in/"),
    ]
    for answer in answers:
        kept = answer["Cache-Control"]
        assert "no-store" in kept, answer.request["PATH_INFO"]
        assert "private" in kept


def test_files_that_are_the_same_for_all_are_kept(client: Client) -> None:
    answer = client.get("/static/agentruns/base.css")
    answer.close()
    assert "no-store" not in answer["Cache-Control"]
    assert settings.STATIC_URL == "/static/"
