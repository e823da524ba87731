"""PostgreSQL transactions in two phases, each with a row that says whose it is and that it landed.

The row is written in the transaction itself: it is there exactly if the effect is.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, LiteralString

import psycopg
from django.utils.translation import gettext as _
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tools.builtin.statements import Statement
from tools.errors import NoEffect

Database = psycopg.Connection[dict[str, Any]]

PREFIX = "agentruns:"
TABLE = "agentruns_effects"
MOST_ROWS = 1000  # that a statement may return: they are kept for its undo
# One at a time makes the tables, where two begin at the same moment.
_MAKING = 0x61726566
_MAKE_TABLES: LiteralString = """
CREATE TABLE IF NOT EXISTS agentruns_effects (
    request_id text PRIMARY KEY,
    statement text NOT NULL,
    params jsonb NOT NULL,
    rows jsonb NOT NULL DEFAULT '[]',
    changed integer NOT NULL DEFAULT 0,
    undo text NOT NULL,
    unless_found text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS agentruns_undone (
    request_id text PRIMARY KEY REFERENCES agentruns_effects,
    at timestamptz NOT NULL DEFAULT now()
)
"""
# By its states, what says that the same may work in a while: somebody else has the rows, the
# server is full, or it is just coming up or going down.
_PASSING = ("40", "53", "08", "57P")
_BUSY = ("55P03", "57014")
# What the database says in these classes is about values, rules, names and what it can do.
_TELLING = ("0A", "22", "23", "42", "55", "P0001")


@dataclass(frozen=True)
class Effect:
    """What the row of a call says. `changed` is -1 where rows were no matter of the statement."""

    request_id: str
    statement: str
    params: dict[str, Any]
    rows: list[dict[str, Any]]
    changed: int
    undo: str
    unless_found: str


@contextmanager
def connected(url: str, timeout: float) -> Iterator[Database]:
    """A connection on which each statement has `timeout` seconds, and waits half of it for others.

    Raises NoEffect if the database cannot be reached.
    """
    limit = int(timeout * 1000)
    try:
        given = conninfo_to_dict(url).get("options") or ""
        database = psycopg.connect(
            url,
            autocommit=True,
            row_factory=dict_row,
            application_name="agentruns",
            connect_timeout=max(2, int(timeout)),
            tcp_user_timeout=limit,
            options=f"{given} -c statement_timeout={limit} -c lock_timeout={limit // 2} "
            f"-c idle_in_transaction_session_timeout={2 * limit} -c timezone=UTC",
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise NoEffect(
            "unreachable",
            _("The database could not be reached, so nothing was done."),
            is_passing=isinstance(error, psycopg.OperationalError),
            error=str(error),
        ) from error
    with database:
        yield database


def prepare(
    database: Database, request_id: str, statement: Statement, params: dict[str, Any]
) -> None:
    """Run the statement up to the point from which it can only land or be dropped.

    In place of what an earlier attempt prepared; nothing is prepared if one has landed. Nobody
    sees any of it, but who wants to change the same rows has to wait. Raises NoEffect if it cannot
    be done.
    """
    roll_back(database, request_id)
    with _known_to_have_no_effect():
        _make_tables(database)
        database.execute("BEGIN")
        begun = database.execute(
            "INSERT INTO agentruns_effects (request_id, statement, params, undo, unless_found) "
            "VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [request_id, statement.name, Jsonb(params), statement.undo, statement.unless],
        )
        if begun.rowcount == 0:
            database.execute("ROLLBACK")
            return
        # Binary, which makes it a statement of its own: the server takes no second one behind it.
        done = database.execute(statement.sql.encode(), _exact(params), binary=True)
        rows = done.fetchmany(MOST_ROWS + 1) if done.description else []
        if statement.rows is not None and done.rowcount != statement.rows:
            raise _wrong_number(statement.rows, done.rowcount)
        if len(rows) > MOST_ROWS:
            raise _wrong_number(MOST_ROWS, done.rowcount)
        database.execute(
            "UPDATE agentruns_effects SET rows = %s, changed = %s WHERE request_id = %s",
            [Jsonb([_plain(row) for row in rows]), done.rowcount, request_id],
        )
        database.execute(_two_phase("PREPARE TRANSACTION {}", request_id))


def commit(database: Database, request_id: str) -> bool:
    """Let what was prepared land; False if nothing is prepared under this id."""
    try:
        database.execute(_two_phase("COMMIT PREPARED {}", request_id))
    except errors.UndefinedObject:
        return False
    return True


def roll_back(database: Database, request_id: str) -> None:
    """Drop what was prepared; harmless if there is nothing."""
    with suppress(errors.UndefinedObject):
        database.execute(_two_phase("ROLLBACK PREPARED {}", request_id))


def prepared(database: Database) -> list[str]:
    """The request ids of all that is prepared in this database, and is ours to decide."""
    found = database.execute(
        "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() "
        "AND owner = current_user AND starts_with(gid, %s)",
        [PREFIX],
    )
    return [row["gid"].removeprefix(PREFIX) for row in found]


def find(database: Database, request_id: str) -> Effect | None:
    """The row of a call whose effect has landed, or None."""
    try:
        row = database.execute(
            "SELECT request_id, statement, params, rows, changed, undo, unless_found "
            "FROM agentruns_effects WHERE request_id = %s",
            [request_id],
        ).fetchone()
    except errors.UndefinedTable:
        return None
    return Effect(**row) if row else None


def begin_undo(database: Database, effect: Effect) -> bool:
    """Say that it is undone, which stands with the rest of the transaction; False if it was said
    before. Whoever says it at the same time has to wait.
    """
    said = database.execute(
        "INSERT INTO agentruns_undone (request_id) VALUES (%s) ON CONFLICT DO NOTHING",
        [effect.request_id],
    )
    return said.rowcount == 1


def has_changed(database: Database, effect: Effect) -> bool:
    """Whether what its statement says of later changes finds one."""
    if not effect.unless_found:
        return False
    found = database.execute(effect.unless_found.encode(), _for_undo(effect), binary=True)
    return found.fetchone() is not None


def undo(database: Database, effect: Effect) -> int:
    """Run its undo; how many rows it changed."""
    return database.execute(effect.undo.encode(), _for_undo(effect), binary=True).rowcount


def words(error: psycopg.Error) -> str:
    """What the database says, where that is about the statement and shows no data."""
    said = error.diag.message_primary or ""
    is_telling = (error.sqlstate or "").startswith(_TELLING)
    return said if is_telling and said else _("it gives no reason")


def refusal(error: psycopg.Error) -> str:
    return _("The database refused it: %(reason)s.") % {"reason": words(error)}


def _make_tables(database: Database) -> None:
    known = database.execute("SELECT to_regclass(%s) AS found", [TABLE]).fetchone()
    if known and known["found"]:
        return
    with database.transaction():
        database.execute("SELECT pg_advisory_xact_lock(%s)", [_MAKING])
        database.execute(_MAKE_TABLES)


@contextmanager
def _known_to_have_no_effect() -> Iterator[None]:
    """Around what only lands with a later word: every error of the database is NoEffect."""
    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or "08"  # without a state it is the connection that is gone
        is_busy = state in _BUSY
        sentence = refusal(error)
        if is_busy:
            sentence = _("Somebody else is changing the same data, so nothing was done.")
        raise NoEffect(
            "busy" if is_busy else "refused",
            sentence,
            is_passing=is_busy or state.startswith(_PASSING),
            sqlstate=state,
        ) from error


def _two_phase(command: LiteralString, request_id: str) -> sql.Composed:
    # These commands take no parameters, so the id goes in as a quoted literal.
    return sql.SQL(command).format(sql.Literal(PREFIX + request_id))


def _wrong_number(expected: int, found: int) -> NoEffect:
    sentence = _("It would change %(found)s rows and not %(expected)s, so nothing was done.")
    return NoEffect("wrong_number", sentence % {"found": found, "expected": expected})


def _for_undo(effect: Effect) -> dict[str, Any]:
    return _exact(effect.params) | {"rows": Jsonb(effect.rows)}


def _exact(params: dict[str, Any]) -> dict[str, Any]:
    """With decimals as they were written: in binary 2.5 % of a price would be a little off."""
    return {
        name: Decimal(str(value)) if isinstance(value, float) else value
        for name, value in params.items()
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """JSON that the database reads back as the same value, given the type of the column."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in row.items()
    }
