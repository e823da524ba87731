"""Write to the database as whoever has taken it over may: with every trigger switched off.

A test's own database belongs to a superuser; the application's role may do none of this.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet


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


def rewrite(rows: QuerySet[Any], **values: Any) -> None:
    """Change what the database would keep as it was written."""
    with without_triggers():
        rows.update(**values)
