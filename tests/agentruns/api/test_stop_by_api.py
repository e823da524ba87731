"""POST /runs/{id}/cancel: 202 with the same body each time, whoever won (R02)."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentruns.models import StopRequest
from tests.agentruns.api.asking import is_problem, post
from tests.agentruns.api.conftest import Api
from tests.agentruns.steps import Steps, now
from tests.pausing import at_once


def test_stop_answers_what_it_did(steps: Steps, api: Api, owner: User) -> None:
    run, _calls = steps.running("test.book", "test.send")

    answer = post(api(owner), f"runs/{run.pk}/cancel", {"reason": "wrong day"})

    assert answer.status_code == 202
    body = answer.json()
    assert body["run_id"] == run.pk
    assert body["phase"] == now(run).status == "stopped_clean"
    assert body["epoch"] == 2
    assert body["won_by"] == "stop"
    assert (body["signal"], body["reason"], body["pending"]) == ("api", "wrong day", "discard")
    assert body["requested_by"] == "owner"
    assert body["no_new_effect_ms"] >= 0
    assert [call["state"] for call in body["groups"]["never_started"]] == ["voided", "voided"]
    assert body["waits_for"] == {"model": False, "calls": [], "until": None, "after": []}


def test_every_repeat_gets_the_same_bytes(steps: Steps, api: Api, owner: User) -> None:
    run = steps.start()
    lease = steps.think(run)
    client = api(owner)

    first = post(client, f"runs/{run.pk}/cancel")
    steps.give_back(lease)
    again = post(client, f"runs/{run.pk}/cancel", {"reason": "again", "pending": "freeze"})

    assert (first.status_code, again.status_code) == (202, 202)
    assert first.content == again.content


def test_twenty_requests_at_once_get_the_same_bytes(steps: Steps, api: Api, owner: User) -> None:
    """A1."""
    run, _calls = steps.running("test.send")
    clients = [api(owner) for _ in range(20)]

    answers = at_once([lambda c=client: post(c, f"runs/{run.pk}/cancel") for client in clients])

    assert {(answer.status_code, answer.content) for answer in answers} == {
        (202, answers[0].content)
    }
    assert StopRequest.objects.filter(run=run).count() == 1


def test_a_finished_run_says_that_completion_won_both_times(
    steps: Steps, api: Api, owner: User
) -> None:
    """A5."""
    run, _no_calls = steps.running()
    assert now(run).status == "completed"
    client = api(owner)

    first, again = (post(client, f"runs/{run.pk}/cancel") for _ in range(2))

    assert (first.status_code, again.status_code) == (202, 202)
    assert first.content == again.content
    body = first.json()
    assert (body["won_by"], body["phase"]) == ("completion", "completed")
    assert body["ended_before_ms"] > 0
    assert body["no_new_effect_ms"] is None


def test_an_unknown_run_is_404(agent: object, api: Api, owner: User) -> None:
    is_problem(post(api(owner), "runs/run_0/cancel"), 404, "not_found")


def test_somebody_elses_run_is_404_and_goes_on(steps: Steps, api: Api, outsider: User) -> None:
    run, _calls = steps.running("test.book")

    is_problem(post(api(outsider), f"runs/{run.pk}/cancel"), 404, "not_found")

    assert now(run).status == "running"


def test_a_reviewer_may_see_the_run_but_not_stop_it(steps: Steps, api: Api, reviewer: User) -> None:
    run, _calls = steps.running("test.book")

    is_problem(post(api(reviewer), f"runs/{run.pk}/cancel"), 403, "not_allowed")

    assert now(run).status == "running"


def test_an_admin_stops_any_run(steps: Steps, api: Api, admin: User) -> None:
    run, _calls = steps.running("test.book")

    answer = post(api(admin), f"runs/{run.pk}/cancel")

    assert answer.status_code == 202
    assert answer.json()["requested_by"] == "admin"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"pending": "burn"}, "pending"),
        (["no object"], ""),
    ],
)
def test_a_bad_body_is_400_and_names_the_field(
    steps: Steps, api: Api, owner: User, body: object, field: str
) -> None:
    run, _calls = steps.running("test.book")

    problem = is_problem(post(api(owner), f"runs/{run.pk}/cancel", body), 400, "bad_input")

    assert problem["errors"][0]["field"] == field
    assert now(run).status == "running"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (None, ""),
        ({"reason": None, "pending": None, "signal": None}, ""),
        ({"reason": "", "pending": "", "signal": ""}, ""),
        ({"reason": "x" * 501}, "x" * 499 + "…"),
        ({"reason": "nul \x00"}, "nul �"),
        ({"reason": "half \ud800"}, "half �"),
        ({"reason": ["a list"]}, '["a list"]'),
        ({"reason": 1}, "1"),
    ],
)
def test_no_reason_keeps_a_stop_from_getting_through(
    steps: Steps, api: Api, owner: User, body: object, kept: str
) -> None:
    run, _calls = steps.running("test.book")

    answer = api(owner).post(
        f"/api/v1/runs/{run.pk}/cancel", json.dumps(body), content_type="application/json"
    )

    assert (answer.status_code, answer.json()["reason"]) == (202, kept)
    assert (answer.json()["signal"], answer.json()["pending"]) == ("api", "discard")
    assert not now(run).is_active


def test_what_has_not_started_can_be_frozen_for_a_person(
    steps: Steps, api: Api, owner: User
) -> None:
    run, _calls = steps.running("test.send")

    answer = post(api(owner), f"runs/{run.pk}/cancel", {"pending": "freeze"})

    assert [call["state"] for call in answer.json()["groups"]["never_started"]] == ["frozen"]


def test_nobody_stops_a_run_without_signing_in(steps: Steps) -> None:
    run, _calls = steps.running("test.book")

    response = post(Client(), f"runs/{run.pk}/cancel")

    is_problem(response, 401, "not_signed_in")
    assert response["WWW-Authenticate"] == "Token"
    assert now(run).status == "running"
