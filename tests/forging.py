"""Write to the database as whoever has taken it over may: with every trigger switched off.

A test's own database belongs to a superuser; the application's role may do none of this.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def without_triggers() -> Iterator[None]:
    """Nothing that the database guards is guarded meanwhile."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def forge(statement: str, *values: object) -> None:
    with without_triggers(), connection.cursor() as cursor:
        cursor.execute(statement, values)
