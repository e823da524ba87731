"""Limits: told where they are set and nowhere else; used up, they say what happens now."""

import pytest
from django.contrib.auth.models import User

from agentruns.models import Agent, Run
from agentruns.protocol.budget import enforce_budget
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page, words
from tests.agentruns.steps import Steps, now


def limited(steps: Steps, **terms: object) -> Run:
    """A run that has done one action, under these terms."""
    Agent.objects.filter(pk=steps.agent.pk).update(**terms)
    steps.agent = Agent.objects.get(pk=steps.agent.pk)
    run, (book, _post) = steps.running("test.book", "test.post")
    steps.act(book)
    return run


def test_what_is_used_of_the_limits_that_are_set(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run = limited(steps, token_limit=5000, call_limit=20, time_limit=600)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "49 of 5,000 tokens" in said
    assert "1 of 20 actions" in said
    assert "0 ms of 10 min" in said or "s of 10 min" in said
    assert "9 tokens" not in said.replace("49 of", "")


def test_without_limits_nothing_is_said_of_them(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run = limited(steps)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "9 tokens" in said
    assert " of " not in said.split("If you stop now")[0]


def test_it_waits_until_who_may_raises_the_limit(
    steps: Steps, browser: Browser, owner: User, reviewer: User
) -> None:
    run = limited(steps, call_limit=1, on_limit="wait")
    enforce_budget(run.pk)
    client = browser(owner)
    text = client.get(f"/runs/{run.pk}/").content
    said = words(text)
    assert "Waiting: its budget is used up" in said
    assert "Its limit of 1 action is reached. It waits until somebody raises the limit." in said
    assert b'name="call_limit" value="2"' in text
    assert b"Raise the limit" not in browser(reviewer).get(f"/runs/{run.pk}/").content

    said = words(
        client.post(f"/runs/{run.pk}/budget/", {"call_limit": "1,000"}, follow=True).content
    )

    assert "1 of 1,000 actions" in said
    assert now(run).status == "running"


@pytest.mark.parametrize("typed", ["", "1", "0", "-5", "many", "9" * 30])
def test_what_is_no_higher_limit_is_refused_with_a_reason(
    steps: Steps, browser: Browser, owner: User, typed: str
) -> None:
    run = limited(steps, call_limit=1, on_limit="wait")
    enforce_budget(run.pk)
    answer = browser(owner).post(f"/runs/{run.pk}/budget/", {"call_limit": typed})
    assert answer.status_code == 400
    assert now(run).call_limit == 1


def test_it_says_that_it_only_reads_and_comes_to_an_end(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run = limited(steps, call_limit=1, on_limit="degrade")
    enforce_budget(run.pk)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "Its limit of 1 action is reached. From now on it only reads" in said


def test_stopped_by_its_budget_it_goes_on_with_a_higher_one(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run = limited(steps, call_limit=1, on_limit="stop")
    enforce_budget(run.pk)
    client = browser(owner)
    said = page(client, f"/runs/{run.pk}/")
    assert "Stop requested: the budget was used up" in said
    assert "call_limit" not in said
    assert "Its limit of 1 action is reached. Raise it first." in said
    client.post(f"/runs/{run.pk}/budget/", {"call_limit": "5"})
    assert "Raise it first" not in page(client, f"/runs/{run.pk}/")
    client.post(f"/runs/{run.pk}/resume/", {"frozen": "release"})
    assert now(run).is_active


def test_an_agent_says_its_limits_before_it_starts(
    agent: Agent, browser: Browser, owner: User
) -> None:
    client = browser(owner)
    assert "At most" not in page(client, "/runs/new/")
    Agent.objects.update(token_limit=5000, cost_limit="0.5", on_limit="wait")
    said = page(client, "/runs/new/")
    assert "At most 5,000 tokens, $0.50. Then it waits until the limit is raised." in said
