"""/healthz says that the process lives; /readyz that runs can be started and stopped here."""

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings


def test_healthz_touches_nothing() -> None:
    """Without the `db` fixture, any query is an error."""
    answer = Client().get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_readyz_is_200_once_everything_is_there() -> None:
    answer = Client().get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "database": "ok", "redis": "ok"}


@pytest.mark.django_db
def test_readyz_stays_200_without_redis(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1"

    answer = Client().get("/readyz")

    assert answer.status_code == 200
    assert answer.json()["redis"] == "cannot be reached; Stop still works"


@pytest.mark.django_db
def test_readyz_names_migrations_that_are_missing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'agentruns'")

    answer = Client().get("/readyz")

    assert answer.status_code == 503
    assert "migrations are not applied, beginning with agentruns.0001" in answer.json()["database"]
