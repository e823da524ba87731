"""The list of runs: whose, in which state, how many."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page
from tests.agentruns.steps import Steps

pytestmark = pytest.mark.django_db(transaction=True)


def counts(client: Client, path: str = "/") -> dict[str, int]:
    """What the filters say."""
    found = re.findall(
        r'data-filter="(\w+)"[^>]*>[^<]*<b>(\d+)</b>', client.get(path).content.decode()
    )
    return {name: int(n) for name, n in found}


def test_somebody_without_runs_is_led_to_the_first(browser: Browser, owner: User) -> None:
    assert "Start the first run" in page(browser(owner), "/")


def test_each_state_has_its_own_count_and_they_add_up(
    steps: Steps, browser: Browser, owner: User
) -> None:
    steps.start()
    steps.running("test.send")  # waits for approval
    stopped, _calls = steps.running("test.book")
    steps.stop(stopped)
    steps.running()  # asks for nothing, so it has finished
    found = counts(browser(owner))
    assert found.pop("all") == sum(found.values()) == 4
    assert {name for name, n in found.items() if n == 1} == {
        "running",
        "waiting",
        "stopped",
        "finished",
    }


def test_a_filter_shows_only_its_state(steps: Steps, browser: Browser, owner: User) -> None:
    running = steps.start()
    steps.stop(steps.start())
    text = browser(owner).get("/?show=stopped").content.decode()
    assert 'data-status="stopped_clean"' in text
    assert running.pk not in text
    assert "None in this state" in page(browser(owner), "/?show=failed")


def test_nobody_sees_the_runs_of_others(steps: Steps, browser: Browser, outsider: User) -> None:
    run = steps.start()
    for path in ("/", "/?scope=all", "/?show=running"):
        assert run.pk not in browser(outsider).get(path).content.decode()


def test_reviewers_and_admins_may_look_at_all_runs(
    steps: Steps, browser: Browser, reviewer: User, admin: User
) -> None:
    run = steps.start()
    for person in (reviewer, admin):
        client = browser(person)
        assert run.pk not in client.get("/?scope=mine").content.decode()
        assert run.pk in client.get("/?scope=all").content.decode()
        assert counts(client, "/?scope=all")["all"] == 1


def test_long_lists_come_in_pages(steps: Steps, browser: Browser, owner: User) -> None:
    for _n in range(21):
        steps.start()
    client = browser(owner)
    assert client.get("/").content.decode().count('class="line"') == 20
    assert client.get("/?page=2").content.decode().count('class="line"') == 1
    assert client.get("/?page=zero").status_code == 200


def test_a_reviewer_without_runs_first_sees_everybodys(
    steps: Steps, browser: Browser, reviewer: User
) -> None:
    run, _ = steps.running("test.note")
    assert run.pk in browser(reviewer).get("/").content.decode()
    assert run.pk not in browser(reviewer).get("/?scope=mine").content.decode()
