"""A run that a run of one's own starts: told of both, and stopped with its parent (R12)."""

from django.contrib.auth.models import User

from agentruns.models import Run
from tests.agentruns.api.asking import get, is_problem, post
from tests.agentruns.api.conftest import Api
from tests.agentruns.steps import Steps, now

WANTED = {"agent": "tester", "goal": "A part of it."}
KEY = {"Idempotency-Key": "a-key-of-ours"}


def test_a_child_is_started_listed_and_stopped_with_its_parent(
    steps: Steps, api: Api, owner: User
) -> None:
    parent, _calls = steps.running("test.book")
    client = api(owner)

    child = post(client, "runs", WANTED | {"parent": parent.pk}).json()

    assert child["parent"] == parent.pk
    assert [run["id"] for run in get(client, "runs", parent=parent.pk).json()["results"]] == [
        child["id"]
    ]
    stopped = post(client, f"runs/{parent.pk}/cancel").json()
    assert stopped["children"] == [{"run_id": child["id"], "status": "stopped_clean"}]
    assert get(client, f"runs/{parent.pk}").json()["children"] == stopped["children"]


def test_the_same_key_is_the_same_child(steps: Steps, api: Api, owner: User) -> None:
    parent, _calls = steps.running("test.book")
    client = api(owner)
    asked = WANTED | {"parent": parent.pk}

    first = post(client, "runs", asked, headers=KEY)
    post(client, f"runs/{parent.pk}/cancel")
    again = post(client, "runs", asked, headers=KEY)
    other = post(client, "runs", WANTED, headers=KEY)

    assert first.content == again.content
    assert Run.objects.filter(parent=parent).count() == 1
    is_problem(other, 422, "idempotency_key_reused")


def test_a_parent_has_to_be_a_run_of_ones_own_that_is_at_work(
    steps: Steps, api: Api, owner: User, outsider: User
) -> None:
    parent, _calls = steps.running("test.book")
    asked = WANTED | {"parent": parent.pk}

    theirs = is_problem(post(api(outsider), "runs", asked), 400, "bad_input")
    unknown = is_problem(post(api(owner), "runs", WANTED | {"parent": "run_0"}), 400, "bad_input")
    steps.stop(parent)
    is_problem(post(api(owner), "runs", asked), 409, "wrong_state")

    assert theirs["errors"] == unknown["errors"]
    assert theirs["errors"][0]["field"] == "parent"
    assert now(parent).children.count() == 0
