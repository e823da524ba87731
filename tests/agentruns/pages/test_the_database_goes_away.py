"""While the database is away, nobody is told that something was done, or that it was not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from tests.agentruns.steps import Steps

pytestmark = pytest.mark.django_db(transaction=True)
Away = Callable[[], None]


@pytest.fixture(params=[OperationalError, InterfaceError])
def away(request: pytest.FixtureRequest) -> Iterator[Away]:
    """From here on, every query of this thread finds nobody."""
    error = request.param("the connection is closed")

    def nobody(*args: Any) -> None:
        raise error

    yield lambda: connection.execute_wrappers.append(nobody)
    connection.execute_wrappers.clear()


@pytest.mark.parametrize("how", ["plain", "htmx"])
def test_stop_says_that_nobody_knows(steps: Steps, owner: User, away: Away, how: str) -> None:
    run = steps.start()
    browser = Client(raise_request_exception=False)
    browser.force_login(owner)
    away()

    answer = browser.post(
        f"/runs/{run.pk}/stop/", headers={"HX-Request": "true"} if how == "htmx" else {}
    )

    assert answer.status_code == 503
    words = answer.content.decode()
    assert "it is not known whether that arrived" in words
    assert ("<html" in words) == (how == "plain")


def test_so_does_the_list(owner: User, away: Away) -> None:
    browser = Client(raise_request_exception=False)
    browser.force_login(owner)
    away()
    assert browser.get("/").status_code == 503


def test_a_program_gets_a_problem(steps: Steps, owner: User, away: Away) -> None:
    run = steps.start()
    browser = Client(raise_request_exception=False)
    browser.force_login(owner)
    away()

    answer = browser.post(f"/api/v1/runs/{run.pk}/cancel")

    assert answer.status_code == 503
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "database_away"
