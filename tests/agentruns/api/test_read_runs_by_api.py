"""GET /runs/{id}, …/ledger and …/snapshot: what the ledger says, to those who may see it."""

import pytest
from django.contrib.auth.models import User

from agentruns.models import ToolCall
from agentruns.states import GROUPS
from tests.agentruns.api.asking import get, is_problem, post
from tests.agentruns.api.conftest import Api
from tests.agentruns.steps import Steps, kinds


def test_every_call_of_a_run_is_in_exactly_one_group(steps: Steps, api: Api, owner: User) -> None:
    """I4."""
    run, calls = steps.running("test.book", "test.post", "test.send")
    steps.act(calls[0])

    body = get(api(owner), f"runs/{run.pk}").json()

    assert set(body["groups"]) == {*GROUPS, "waiting"}
    listed = [call["id"] for group in body["groups"].values() for call in group]
    assert sorted(listed) == sorted(ToolCall.objects.values_list("pk", flat=True))
    assert [call["id"] for call in body["groups"]["done"]] == [calls[0].pk]
    assert body["groups"]["done"][0]["undo"] == "possible"
    assert body["tokens"] == {"read": 40, "written": 9}
    assert body["stop"] is None


def test_a_stopped_run_tells_of_its_stop_and_both_clocks(
    steps: Steps, api: Api, owner: User
) -> None:
    run, _calls = steps.running("test.book")
    client = api(owner)
    post(client, f"runs/{run.pk}/cancel", {"reason": "enough"})

    body = get(client, f"runs/{run.pk}").json()

    assert (body["status"], body["status_label"], body["epoch"]) == ("stopped_clean", "Stopped", 2)
    assert body["stop"]["reason"] == "enough"
    assert body["stop"]["safe_stop_ms"] >= body["stop"]["no_new_effect_ms"] >= 0


def test_the_ledger_is_read_in_pages_from_any_seq(steps: Steps, api: Api, owner: User) -> None:
    run, _calls = steps.running("test.book", "test.send")
    client, seen, after = api(owner), [], 0

    while True:
        page = get(client, f"runs/{run.pk}/ledger", after=after, limit=3).json()
        if not page["events"]:
            break
        seen += page["events"]
        after = page["last_seq"]

    assert [event["kind"] for event in seen] == kinds(run)
    assert [event["seq"] for event in seen] == list(range(1, page["head_seq"] + 1))
    chained = [event["hash"] for event in seen]
    assert [event["prev_hash"] for event in seen] == ["", *chained[:-1]]


def test_what_a_person_did_stays_theirs_when_somebody_else_takes_their_name(
    steps: Steps, api: Api, owner: User, outsider: User
) -> None:
    """A5: the ledger names people by id; who reads it is told what they are called now."""
    run, _calls = steps.running("test.book")
    stop = steps.stop(run)
    User.objects.filter(pk=owner.pk).update(username="was-owner", first_name="Anna")
    User.objects.filter(pk=outsider.pk).update(username="owner")

    events = get(api(owner), f"runs/{run.pk}/ledger").json()["events"]

    asked = next(event for event in events if event["kind"] == "stop.requested")
    assert (asked["actor"], asked["actor_name"]) == (f"user:{owner.pk}", "Anna")
    assert asked["sets"]["stop:2"]["requested_by"] == owner.pk == stop.requested_by_id


@pytest.mark.parametrize("query", [{"after": -1}, {"after": "x"}, {"limit": 0}, {"limit": 501}])
def test_a_page_of_the_ledger_that_does_not_exist_is_refused(
    steps: Steps, api: Api, owner: User, query: dict[str, object]
) -> None:
    run = steps.start()

    is_problem(get(api(owner), f"runs/{run.pk}/ledger", **query), 400, "bad_input")


def test_the_snapshot_says_what_is_done_and_what_is_not(
    steps: Steps, api: Api, owner: User
) -> None:
    run, calls = steps.running("test.book", "test.send")
    steps.act(calls[0])
    steps.approve(calls[1])
    steps.act(calls[1])
    lease = steps.think(run)
    steps.propose(lease, "test.post")
    steps.stop(run)
    steps.give_back(lease)

    body = get(api(owner), f"runs/{run.pk}/snapshot").json()

    assert body["status"] == "stopped_clean"
    assert [call["id"] for call in body["done"]] == [calls[0].pk, calls[1].pk]
    assert [call["id"] for call in body["irreversible_done"]] == [calls[1].pk]
    assert len(body["plan"]) == 3
    assert body["pending"] == []
    assert body["partial_output"]["status"] == "incomplete"


@pytest.mark.parametrize("part", ["", "/ledger", "/snapshot"])
def test_nobody_reads_another_persons_run(
    steps: Steps, api: Api, outsider: User, reviewer: User, part: str
) -> None:
    run = steps.start()

    is_problem(get(api(outsider), f"runs/{run.pk}{part}"), 404, "not_found")
    is_problem(get(api(outsider), f"runs/run_unknown{part}"), 404, "not_found")
    assert get(api(reviewer), f"runs/{run.pk}{part}").status_code == 200
