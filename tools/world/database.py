"""The database of the demo world: a shop's price lists and customers, and what was done to them.

What was done is told by the rows that each change leaves in the same transaction. Where to read
them stands in the world's folder.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

DEMO_DATABASE = "agentruns_demo"
ADDRESS = "database.url"

_MAKING = 0x776F726C  # whoever makes the tables, makes them alone
_TABLES = """
CREATE TABLE price_lists (name text PRIMARY KEY);
CREATE TABLE prices (
    list text NOT NULL REFERENCES price_lists,
    item text NOT NULL,
    price numeric(10, 2) NOT NULL CHECK (price > 0),
    PRIMARY KEY (list, item)
);
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, country text NOT NULL);
INSERT INTO price_lists VALUES ('2025'), ('2026');
INSERT INTO prices VALUES
    ('2025', 'chair', 75), ('2025', 'desk', 229), ('2025', 'lamp', 35),
    ('2026', 'chair', 79), ('2026', 'desk', 240), ('2026', 'lamp', 35);
INSERT INTO customers VALUES
    (1, 'Acme Ltd', 'IE'), (2, 'Binnen BV', 'NL'), (3, 'Hollow Trading Ltd', 'GB');
"""
_FOUND = """
SELECT request_id, statement, params, landed.at, undone.at
FROM agentruns_effects AS effect
LEFT JOIN agentruns_undone AS undone USING (request_id),
LATERAL (
    SELECT coalesce(
        CASE WHEN current_setting('track_commit_timestamp')::bool
            THEN pg_xact_commit_timestamp(effect.xmin) END,
        effect.at
    ) AS at
) AS landed
ORDER BY landed.at
"""


class Change(NamedTuple):
    """One statement that landed in the database."""

    request_id: str
    statement: str
    params: dict[str, Any]
    at: datetime
    undone_at: datetime | None


def ensure_database(url: str, world_dir: Path) -> None:
    """Make the tables with what is in them, unless they are there, and say where they are.

    Only in a database whose name begins as the demo's: any other is somebody's own. Raises
    psycopg.Error.
    """
    address = world_dir / ADDRESS
    if not url:
        address.unlink(missing_ok=True)
        return
    with psycopg.connect(url, connect_timeout=5) as database:
        if database.info.dbname.startswith(DEMO_DATABASE):
            database.execute("SELECT pg_advisory_xact_lock(%s)", [_MAKING])
            found = database.execute("SELECT to_regclass('prices')").fetchone()
            if found == (None,):
                database.execute(sql.SQL(_TABLES))
    address.touch(mode=0o600)  # it may name a password
    address.write_text(url)


def changes(world_dir: Path) -> Iterator[Change]:
    """All that landed, in order of time; none where the world has no database."""
    address = world_dir / ADDRESS
    if not address.exists():
        return
    with psycopg.connect(address.read_text(), connect_timeout=5) as database:
        found = database.execute("SELECT to_regclass('agentruns_effects')").fetchone()
        if found == (None,):
            return
        for row in database.execute(sql.SQL(_FOUND)):
            yield Change(*row)
