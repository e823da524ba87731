"""The demo's database, seen by somebody who works with it too."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings

from tools.world.database import ensure_database
from tools.world.record import Effect, effects

PRICES = {"chair": "79.00", "desk": "240.00", "lamp": "35.00"}


class Shop:
    """A connection of its own, and a price list that no other test has."""

    def __init__(self, database: psycopg.Connection, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.list = f"list-{uuid4().hex[:8]}"
        self.run("INSERT INTO price_lists VALUES (%s)", self.list)
        for item, price in PRICES.items():
            self.run("INSERT INTO prices VALUES (%s, %s, %s)", self.list, item, price)

    def run(self, query: str, *params: object) -> None:
        self.database.execute(query.encode(), params)

    def prices(self, name: str = "") -> dict[str, str]:
        found = self.database.execute(
            "SELECT item, price::text FROM prices WHERE list = %s ORDER BY item",
            [name or self.list],
        )
        return dict(found.fetchall())

    def has_list(self, name: str) -> bool:
        found = self.database.execute("SELECT 1 FROM price_lists WHERE name = %s", [name])
        return found.fetchone() is not None

    def effects(self, request_id: str) -> list[Effect]:
        return [each for each in effects(self.folder) if each.request_id == request_id]


@contextmanager
def opened(folder: Path) -> Iterator[Shop]:
    if not settings.SQL_TOOL_URL:
        pytest.skip("no database for agents: SQL_TOOL_URL is not set")
    ensure_database(settings.SQL_TOOL_URL, folder)
    with psycopg.connect(settings.SQL_TOOL_URL, autocommit=True) as database:
        yield Shop(database, folder)
        ours = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
        for (gid,) in database.execute(ours).fetchall():
            database.execute(psycopg.sql.SQL("ROLLBACK PREPARED {}").format(gid))
