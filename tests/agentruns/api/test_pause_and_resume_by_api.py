"""Hold a run, let it go on, and take it up again after a stop (R09)."""

import pytest
from django.contrib.auth.models import User

from tests.agentruns.api.asking import get, is_problem, post
from tests.agentruns.api.conftest import Api
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now


def test_a_paused_run_waits_and_goes_on(steps: Steps, api: Api, owner: User) -> None:
    run, (book,) = steps.running("test.book")
    client = api(owner)

    held = post(client, f"runs/{run.pk}/pause", {"reason": "one moment"})

    assert held.status_code == 200
    assert (held.json()["status"], held.json()["suspended_reason"]) == ("suspended", "paused")
    assert anew(book).state == "approved"
    assert post(client, f"runs/{run.pk}/pause").status_code == 200  # again is the same

    going = post(client, f"runs/{run.pk}/unpause").json()
    assert (going["status"], going["suspended_reason"]) == ("running", "")
    is_problem(post(client, f"runs/{run.pk}/unpause"), 409, "wrong_state")


def test_a_stopped_run_is_taken_up_in_a_new_epoch(steps: Steps, api: Api, owner: User) -> None:
    run, _calls = steps.running("test.book")
    client = api(owner)
    post(client, f"runs/{run.pk}/cancel")

    body = post(client, f"runs/{run.pk}/resume").json()

    assert (body["status"], body["epoch"]) == ("queued", 3)
    assert [stop["epoch"] for stop in body["stops"]] == [2]
    is_problem(post(client, f"runs/{run.pk}/resume"), 409, "wrong_state")


@pytest.mark.parametrize(("frozen", "state"), [("release", "approved"), ("void", "voided")])
def test_what_was_frozen_is_released_or_dropped(
    steps: Steps, api: Api, owner: User, frozen: str, state: str
) -> None:
    run, (book,) = steps.running("test.book")
    client = api(owner)
    post(client, f"runs/{run.pk}/cancel", {"pending": "freeze"})

    answer = post(client, f"runs/{run.pk}/resume", {"frozen": frozen})

    assert answer.status_code == 200
    assert anew(book).state == state


def test_nobody_decides_over_what_was_frozen_by_saying_nothing(
    steps: Steps, api: Api, owner: User
) -> None:
    run, (book,) = steps.running("test.book")
    client = api(owner)
    post(client, f"runs/{run.pk}/cancel", {"pending": "freeze"})

    problem = is_problem(post(client, f"runs/{run.pk}/resume"), 400, "bad_input")

    assert problem["errors"][0]["field"] == "frozen"
    assert (now(run).status, anew(book).state) == ("stopped_clean", "frozen")


def test_a_run_in_doubt_is_not_taken_up(
    steps: Steps, api: Api, owner: User, outside: Outside
) -> None:
    outside.answers["test.post"] = "lost"
    run, (message,) = steps.running("test.post")
    steps.act(message)
    client = api(owner)
    post(client, f"runs/{run.pk}/cancel")

    problem = is_problem(post(client, f"runs/{run.pk}/resume"), 409, "wrong_state")

    assert "in doubt" in problem["detail"]


@pytest.mark.parametrize("verb", ["pause", "unpause", "resume", "budget"])
def test_only_who_may_stop_a_run_may_steer_it(
    steps: Steps, api: Api, reviewer: User, outsider: User, verb: str
) -> None:
    run, _calls = steps.running("test.book")

    is_problem(post(api(reviewer), f"runs/{run.pk}/{verb}"), 403, "not_allowed")
    is_problem(post(api(outsider), f"runs/{run.pk}/{verb}"), 404, "not_found")

    assert now(run).status == "running"


def test_a_run_that_has_ended_can_be_neither_paused_nor_taken_up(
    steps: Steps, api: Api, owner: User
) -> None:
    run, _no_calls = steps.running()
    client = api(owner)

    for verb in ("pause", "unpause", "resume"):
        is_problem(post(client, f"runs/{run.pk}/{verb}"), 409, "wrong_state")


def test_the_snapshot_names_the_checkpoint_to_go_on_from(
    steps: Steps, api: Api, owner: User
) -> None:
    run, _calls = steps.running("test.book")

    found = get(api(owner), f"runs/{run.pk}/snapshot").json()["resume_from"]

    assert (found["turn"], found["before"]) == (1, "model_call")
    assert 0 < found["seq"] <= now(run).ledger_seq
