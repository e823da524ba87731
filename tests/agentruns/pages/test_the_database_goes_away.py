"""While the database is away, nobody is told that something was done, or that it was not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from agentruns.postgresql.base import must_take_writes
from tests.agentruns.steps import Steps, now

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


@pytest.fixture
def overtaken(transactional_db: None) -> Iterator[None]:
    """This thread's connection leads to a server that is only read from since a failover."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    yield
    connection.close()


PLACES = {"page": "/runs/{}/stop/", "api": "/api/v1/runs/{}/cancel"}


@pytest.mark.parametrize("path", PLACES.values(), ids=PLACES)
def test_a_database_that_takes_no_writes_is_away_and_its_connection_is_not_used_again(
    steps: Steps, owner: User, path: str, request: pytest.FixtureRequest
) -> None:
    """N19: pooled connections look alive, reads work, and each write fails."""
    run = steps.start()
    browser = Client(raise_request_exception=False)
    browser.force_login(owner)
    request.getfixturevalue("overtaken")

    def stop() -> Any:
        return browser.post(path.format(run.pk), content_type="application/json")

    assert browser.get("/").status_code == 200
    assert stop().status_code == 503
    assert now(run).status == "queued"

    connection.close()  # as at the end of each request
    assert stop().status_code in (202, 302)
    assert now(run).status == "stopped_clean"


def test_each_connection_that_takes_no_writes_is_replaced(transactional_db: None) -> None:
    for _again in range(2):  # also right after the pool was renewed
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
        with pytest.raises(OperationalError):
            User.objects.create_user("anybody")
        connection.close()
        must_take_writes()


def test_nothing_is_ready_on_a_database_that_takes_no_writes(overtaken: None) -> None:
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, "takes no writes")
