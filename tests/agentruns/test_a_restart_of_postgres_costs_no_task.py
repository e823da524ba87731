"""R82: a connection that Postgres has ended meanwhile is not given to the next task."""

import time

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from tests.pausing import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def count() -> int:
    return User.objects.count()


def test_ended_connections_are_not_given_out(owner: User) -> None:
    assert at_once([count] * 12) == [1] * 12  # the pool has some connections now
    there = connection.get_connection_params()
    named = {key: there[key] for key in ("dbname", "user", "host", "port") if key in there}
    connection.close()
    with psycopg.connect(**named, autocommit=True) as apart:
        apart.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    began = time.monotonic()
    assert at_once([count] * 4) == [1] * 4
    # The pool's own check would wait 1 + 2 + 4 + … seconds, one dead connection after the other.
    assert time.monotonic() - began < 3
