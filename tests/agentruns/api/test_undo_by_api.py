"""Foresee, ask, stop, try again and settle, as a program does (R60, R42, R43)."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from agentruns.models import Run, ToolCall
from compensation.saga import run_next
from tests.agentruns.api.asking import get, is_problem, post
from tests.agentruns.api.conftest import Api
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def landed(steps: Steps) -> list[ToolCall]:
    """A read, a booking and a post of a stopped run, all done."""
    run, calls = steps.running("test.note", "test.book", "test.post")
    calls = [steps.act(call) for call in calls]
    steps.stop(run)
    return [anew(call) for call in calls]


@pytest.fixture
def run(landed: list[ToolCall]) -> Run:
    return now(landed[0].run)


def by_call(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["call_id"]: item for item in body["items"]}


def work(run: Run) -> None:
    while run_next(run.pk):
        pass


def step_id(body: dict[str, Any], call: ToolCall) -> str:
    return str(by_call(body)[call.pk]["undo"]["id"])


def test_it_foresees_what_undo_would_do(landed: list[ToolCall], run: Run, api: Api) -> None:
    note, book, post_ = landed
    body = get(api(run.owner), f"runs/{run.pk}/undo").json()
    assert [item["call_id"] for item in body["items"]] == [post_.pk, book.pk, note.pk]
    assert by_call(body)[note.pk]["code"] == "not_needed"
    assert by_call(body)[book.pk] == {
        "call_id": book.pk,
        "summary": "book “thing 1”",
        "code": "possible",
        "text": "The booking is cancelled.",
        "can_undo": True,
        "undo": None,
    }
    assert body["is_under_way"] is False


def test_some_are_undone_and_the_others_stand(landed: list[ToolCall], run: Run, api: Api) -> None:
    _note, book, post_ = landed
    client = api(run.owner)
    answer = post(client, f"runs/{run.pk}/undo", {"call_ids": [book.pk]})
    assert (answer.status_code, answer.json()["is_under_way"]) == (202, True)
    work(run)
    items = by_call(get(client, f"runs/{run.pk}/undo").json())
    undo = items[book.pk]["undo"]
    assert (undo["state"], undo["note"], undo["requested_by"]) == (
        "undone",
        "It is gone again.",
        "owner",
    )
    assert items[post_.pk]["undo"] is None


def test_all_means_whatever_can_be_and_means_it_again(
    landed: list[ToolCall], run: Run, api: Api
) -> None:
    client = api(run.owner)
    for _time in range(2):
        assert post(client, f"runs/{run.pk}/undo", {"call_ids": "all"}).status_code == 202
        work(run)
    states = [anew(call).undo_state for call in landed]
    assert states == ["", "undone", "undone"]
    assert run.undo_requests.count() == 1


def test_where_nothing_can_be_undone_all_is_refused(steps: Steps, api: Api, owner: User) -> None:
    run, (note,) = steps.running("test.note")
    steps.act(note)
    steps.stop(run)
    answer = post(api(owner), f"runs/{run.pk}/undo", {"call_ids": "all"})
    is_problem(answer, 409, "wrong_state")


def test_an_undo_is_stopped(landed: list[ToolCall], run: Run, api: Api) -> None:
    client = api(run.owner)
    is_problem(post(client, f"runs/{run.pk}/undo/stop"), 409, "wrong_state")
    post(client, f"runs/{run.pk}/undo", {"call_ids": "all"})
    for _time in range(2):
        body = post(client, f"runs/{run.pk}/undo/stop").json()
        assert body["is_under_way"] is False
    assert by_call(body)[landed[1].pk]["undo"]["state"] == "dropped"
    retried = post(client, f"undos/{step_id(body, landed[1])}/retry")
    assert retried.status_code == 202
    work(run)
    assert [anew(call).undo_state for call in landed] == ["", "undone", ""]


def test_what_did_not_work_is_settled_by_hand(
    landed: list[ToolCall], run: Run, api: Api, outside: Outside
) -> None:
    client = api(run.owner)
    outside.answers["undo"] = "changed"
    post(client, f"runs/{run.pk}/undo", {"call_ids": "all"})
    work(run)
    body = get(client, f"runs/{run.pk}/undo").json()
    assert by_call(body)[landed[1].pk]["undo"]["needs_person"] is True
    said = {"answer": "undone", "reason": "I did it."}
    settled = post(client, f"undos/{step_id(body, landed[1])}/settle", said)
    assert settled.status_code == 200
    found = {key: settled.json()[key] for key in ("state", "settled_by", "settled_reason")}
    assert found == {"state": "undone", "settled_by": "owner", "settled_reason": "I did it."}
    left = post(
        client, f"undos/{step_id(body, landed[2])}/settle", {"answer": "leave", "reason": "Fine."}
    )
    assert (left.json()["state"], left.json()["needs_person"]) == ("left", False)
    is_problem(post(client, f"undos/{step_id(body, landed[2])}/settle", said), 409, "wrong_state")


@pytest.mark.parametrize(
    "body",
    [{}, {"call_ids": []}, {"call_ids": ["call_nope"]}, {"call_ids": "some"}, {"call_ids": 7}],
)
def test_a_body_that_cannot_be_used_is_refused(run: Run, api: Api, body: dict[str, Any]) -> None:
    is_problem(post(api(run.owner), f"runs/{run.pk}/undo", body), 400, "bad_input")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"answer": "undone"},
        {"answer": "maybe", "reason": "x"},
        {"answer": "leave", "reason": " "},
    ],
)
def test_nobody_settles_without_an_answer_and_a_reason(
    landed: list[ToolCall], run: Run, api: Api, body: dict[str, Any]
) -> None:
    client = api(run.owner)
    found = post(client, f"runs/{run.pk}/undo", {"call_ids": "all"}).json()
    answer = post(client, f"undos/{step_id(found, landed[1])}/settle", body)
    is_problem(answer, 400, "bad_input")


def test_while_the_run_acts_nothing_is_undone(steps: Steps, api: Api, owner: User) -> None:
    run, (book,) = steps.running("test.book")
    steps.act(book)
    answer = post(api(owner), f"runs/{run.pk}/undo", {"call_ids": [book.pk]})
    is_problem(answer, 409, "wrong_state")


def test_a_reviewer_sees_and_does_not_undo_and_a_stranger_sees_nothing(
    landed: list[ToolCall], run: Run, api: Api, reviewer: User, outsider: User
) -> None:
    body = post(api(run.owner), f"runs/{run.pk}/undo", {"call_ids": "all"}).json()
    step = step_id(body, landed[1])
    paths = [f"runs/{run.pk}/undo", f"runs/{run.pk}/undo/stop"]
    paths += [f"undos/{step}/settle", f"undos/{step}/retry"]
    assert get(api(reviewer), f"runs/{run.pk}/undo").status_code == 200
    is_problem(get(api(outsider), f"runs/{run.pk}/undo"), 404, "not_found")
    for path in paths:
        data = {"call_ids": "all", "answer": "undone", "reason": "Mine."}
        is_problem(post(api(reviewer), path, data), 403, "not_allowed")
        is_problem(post(api(outsider), path, data), 404, "not_found")


def test_an_unknown_undo_is_not_found(api: Api, owner: User) -> None:
    is_problem(post(api(owner), "undos/comp_nowhere/retry"), 404, "not_found")
