"""A person takes a run over: a stop that keeps what has not started for them (R05, R52)."""

from django.contrib.auth.models import User

from tests.agentruns.api.asking import is_problem, post
from tests.agentruns.api.conftest import Api
from tests.agentruns.steps import Steps, anew, now

TAKE_OVER = {"signal": "handoff", "reason": "I do the rest"}


def test_a_reviewer_takes_over_what_has_not_started(steps: Steps, api: Api, reviewer: User) -> None:
    run, (send,) = steps.running("test.send")

    body = post(api(reviewer), f"runs/{run.pk}/cancel", TAKE_OVER).json()

    assert (body["signal"], body["pending"], body["requested_by"]) == (
        "handoff",
        "freeze",
        "reviewer",
    )
    assert anew(send).state == "frozen"


def test_nothing_is_discarded_by_a_take_over(steps: Steps, api: Api, reviewer: User) -> None:
    run, _calls = steps.running("test.send")
    asked = TAKE_OVER | {"pending": "discard"}

    problem = is_problem(post(api(reviewer), f"runs/{run.pk}/cancel", asked), 400, "bad_input")

    assert problem["errors"][0]["field"] == "pending"
    assert now(run).is_active


def test_a_source_that_is_not_offered_is_refused(steps: Steps, api: Api, owner: User) -> None:
    run, _calls = steps.running("test.send")

    answer = post(api(owner), f"runs/{run.pk}/cancel", {"signal": "budget"})

    assert is_problem(answer, 400, "bad_input")["errors"][0]["field"] == "signal"


def test_what_the_stop_met_is_told(steps: Steps, api: Api, owner: User) -> None:
    """R10."""
    run = steps.start()
    lease = steps.think(run)

    body = post(api(owner), f"runs/{run.pk}/cancel").json()

    assert body["interrupted"] == "generating"
    assert body["closing"] == "The model was at work: what it had written is kept."
    steps.give_back(lease)
