"""POST /runs: one run per request, and one run per Idempotency-Key (E15)."""

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from agentruns.models import Agent, IdempotencyKey, Run
from agentruns.protocol.start import start_run
from tests.agentruns.api.asking import get, is_problem, post
from tests.agentruns.api.conftest import Api
from tests.pausing import at_once

WANTED = {"agent": "tester", "goal": "Tidy the inbox."}
KEY = {"Idempotency-Key": "a-key-of-ours"}


def test_a_run_is_started_and_can_be_read(agent: Agent, api: Api, owner: User) -> None:
    client = api(owner)

    answer = post(client, "runs", WANTED)

    assert answer.status_code == 201
    body = answer.json()
    assert (body["status"], body["owner"], body["goal"]) == ("queued", "owner", WANTED["goal"])
    assert answer["Location"] == body["urls"]["self"] == f"/api/v1/runs/{body['id']}"
    assert client.get(answer["Location"]).json() == body


def test_without_a_key_each_request_is_a_run(agent: Agent, api: Api, owner: User) -> None:
    client = api(owner)

    assert post(client, "runs", WANTED).json()["id"] != post(client, "runs", WANTED).json()["id"]


def test_the_same_key_is_the_same_run_with_the_same_body(
    agent: Agent, api: Api, owner: User
) -> None:
    client = api(owner)

    first = post(client, "runs", WANTED, headers=KEY)
    post(client, f"runs/{first.json()['id']}/cancel")
    again = post(client, "runs", WANTED, headers=KEY)

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert Run.objects.count() == 1


def test_ten_requests_at_once_with_one_key_are_one_run(agent: Agent, api: Api, owner: User) -> None:
    clients = [api(owner) for _ in range(10)]

    answers = at_once([lambda c=client: post(c, "runs", WANTED, headers=KEY) for client in clients])

    assert {(answer.status_code, answer.content) for answer in answers} == {
        (201, answers[0].content)
    }
    assert Run.objects.count() == 1


def test_a_request_that_died_half_way_is_finished_by_its_repeat(
    agent: Agent, api: Api, owner: User
) -> None:
    client = api(owner)
    post(client, "runs", WANTED, headers=KEY)
    IdempotencyKey.objects.update(answer=None)  # as it is between the start and the answer

    again = post(client, "runs", WANTED, headers=KEY)

    assert again.status_code == 201
    assert [run.pk for run in Run.objects.all()] == [again.json()["id"]]


def test_the_same_key_for_something_else_is_refused(agent: Agent, api: Api, owner: User) -> None:
    client = api(owner)
    post(client, "runs", WANTED, headers=KEY)

    other = post(client, "runs", WANTED | {"goal": "Something else."}, headers=KEY)

    is_problem(other, 422, "idempotency_key_reused")
    assert Run.objects.count() == 1


def test_a_key_belongs_to_one_person(agent: Agent, api: Api, owner: User, outsider: User) -> None:
    first = post(api(owner), "runs", WANTED, headers=KEY)
    other = post(api(outsider), "runs", WANTED, headers=KEY)

    assert first.json()["id"] != other.json()["id"]


@pytest.mark.parametrize("key", ["", "two words", "x" * 256])
def test_a_key_that_is_no_key_is_refused(agent: Agent, api: Api, owner: User, key: str) -> None:
    answer = post(api(owner), "runs", WANTED, headers={"Idempotency-Key": key})

    is_problem(answer, 400, "bad_input")
    assert Run.objects.count() == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"goal": "x"}, "agent"),
        ({"agent": "nobody", "goal": "x"}, "agent"),
        ({"agent": "tester"}, "goal"),
        ({"agent": "tester", "goal": "   "}, "goal"),
        ({"agent": "tester", "goal": 1}, "goal"),
        ({"agent": "tester", "goal": "x" * 100_000}, "goal"),
        ({"agent": "tester", "goal": "nul \x00"}, "goal"),
        ({"agent": "tester", "goal": "half \ud800"}, "goal"),
    ],
)
def test_what_cannot_be_used_is_named(
    agent: Agent, api: Api, owner: User, body: object, field: str
) -> None:
    problem = is_problem(post(api(owner), "runs", body), 400, "bad_input")

    assert [error["field"] for error in problem["errors"]] == [field]
    assert Run.objects.count() == 0


def test_an_agent_that_is_not_listed_cannot_be_chosen(agent: Agent, api: Api, owner: User) -> None:
    Agent.objects.update(is_listed=False)

    is_problem(post(api(owner), "runs", WANTED), 400, "bad_input")


def test_the_list_has_what_one_may_see_newest_first(
    agent: Agent, api: Api, owner: User, outsider: User, reviewer: User
) -> None:
    runs = [start_run(owner=owner, agent=agent, goal=f"Goal {n}", ring=False) for n in range(3)]
    theirs = start_run(owner=outsider, agent=agent, goal="Theirs", ring=False)

    mine = get(api(owner), "runs").json()
    all_of_them = get(api(reviewer), "runs").json()

    assert [run["id"] for run in mine["results"]] == [run.pk for run in reversed(runs)]
    assert all_of_them["count"] == 4
    assert all_of_them["results"][0]["id"] == theirs.pk


def test_the_list_comes_in_pages_and_by_status(agent: Agent, api: Api, owner: User) -> None:
    client = api(owner)
    runs = [start_run(owner=owner, agent=agent, goal=f"Goal {n}", ring=False) for n in range(3)]
    post(client, f"runs/{runs[0].pk}/cancel")

    page = get(client, "runs", limit=2).json()
    rest = client.get(page["next"]).json()
    stopped = get(client, "runs", status="stopped_clean").json()

    assert [len(page["results"]), len(rest["results"]), rest["next"]] == [2, 1, None]
    assert [run["id"] for run in stopped["results"]] == [runs[0].pk]
    is_problem(get(client, "runs", status="asleep"), 400, "bad_input")


def test_too_many_runs_are_429_with_a_sentence_and_when_to_ask_again(
    api: Api, owner: User, agent: Agent, settings: Settings
) -> None:
    settings.RUNS_PER_PERSON = 1
    client = api(owner)
    assert post(client, "runs", WANTED).status_code == 201
    answer = post(client, "runs", WANTED)
    assert (answer.status_code, answer["Retry-After"]) == (429, "30")
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert (body["code"], body["limit"]) == ("too_many_runs", 1)
    assert "that is the limit" in body["detail"]
