"""What a run may use, what it has used, and a higher limit (R08)."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import User

from agentruns.models import Agent, Run
from agentruns.protocol.budget import enforce_budget
from tests.agentruns.api.asking import get, is_problem, post
from tests.agentruns.api.conftest import Api
from tests.agentruns.steps import Steps, now


@pytest.fixture
def held(steps: Steps, agent: Agent) -> Run:
    """A run that has reached its limit of one action, and waits."""
    Agent.objects.filter(pk=agent.pk).update(
        call_limit=1, on_limit="wait", price_per_million_tokens=Decimal(10)
    )
    agent.refresh_from_db()
    run, (book,) = steps.running("test.book")
    steps.act(book)
    enforce_budget(run.pk)
    assert now(run).suspended_reason == "budget"
    return run


def test_what_it_may_use_and_has_used_is_told(held: Run, api: Api, owner: User) -> None:
    found = get(api(owner), f"runs/{held.pk}").json()["budget"]

    assert (found["call_limit"], found["token_limit"], found["on_limit"]) == (1, None, "wait")
    assert (found["used"]["calls"], found["used"]["tokens"]) == (1, 49)
    assert Decimal(found["used"]["cost"]) == Decimal("0.00009")


def test_a_raised_limit_lets_it_go_on(held: Run, api: Api, owner: User) -> None:
    body = post(api(owner), f"runs/{held.pk}/budget", {"call_limit": 2}).json()

    assert (body["status"], body["budget"]["call_limit"]) == ("running", 2)


def test_a_lifted_limit_does_too(held: Run, api: Api, admin: User) -> None:
    body = post(api(admin), f"runs/{held.pk}/budget", {"call_limit": None}).json()

    assert (body["status"], body["budget"]["call_limit"]) == ("running", None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"call_limit": 1}, "call_limit"),
        ({"call_limit": 0}, "call_limit"),
        ({"call_limit": "many"}, "call_limit"),
        ({"token_limit": 2**40}, "token_limit"),
        ({"cost_limit": "1e9"}, "cost_limit"),
        ({}, ""),
        ({"hugs": 3}, ""),
    ],
)
def test_what_is_no_higher_limit_is_refused(
    held: Run, api: Api, owner: User, body: object, field: str
) -> None:
    problem = is_problem(post(api(owner), f"runs/{held.pk}/budget", body), 400, "bad_input")

    assert problem["errors"][0]["field"] == field
    assert now(held).suspended_reason == "budget"
