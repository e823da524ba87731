"""A5: in the embedded server, too, the application works under a role that is neither superuser nor
owner: what guards the ledger is out of its reach.
"""

import psycopg
import pytest

from agentruns.models import LedgerEvent, Run, ToolCall
from agentruns.postgresql.hardening import excess_of
from agentruns.services.postgres import APPLICATION, OWNER
from agentruns.services.stack import Stack

pytestmark = pytest.mark.stack

EVENTS, CALLS, RUNS = (each._meta.db_table for each in (LedgerEvent, ToolCall, Run))
TRIGGER = LedgerEvent._meta.triggers[-1].get_pgid(LedgerEvent)  # type: ignore[attr-defined]

ATTACKS = {
    "no trigger fires": "SET session_replication_role = replica",
    "one trigger is switched off": f"ALTER TABLE {EVENTS} DISABLE TRIGGER ALL",
    "a trigger is dropped": f"DROP TRIGGER {TRIGGER} ON {EVENTS}",
    "a guard's function is another": "CREATE OR REPLACE FUNCTION "
    "public._pgtrigger_should_ignore(trigger_name name) "
    "RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "events are emptied": f"TRUNCATE {EVENTS} CASCADE",
    "events are deleted": f"DELETE FROM {EVENTS}",
    "events are changed": f"UPDATE {EVENTS} SET actor = 'nobody'",
    "calls are deleted": f"DELETE FROM {CALLS}",
    "runs are deleted": f"DELETE FROM {RUNS}",
    "heads are changed": "UPDATE agentruns_ledgerhead SET seq = 0",
    "a table is dropped": f"DROP TABLE {EVENTS} CASCADE",
    "a table is in the way": f"CREATE TEMPORARY TABLE {RUNS} (id text)",
    "a table is made": "CREATE TABLE public.mine (id text)",
    "it becomes the owner": f"SET ROLE {OWNER}",
    "it becomes a superuser": "ALTER ROLE CURRENT_USER SUPERUSER",
    "migrations are forgotten": "DELETE FROM django_migrations",
}


@pytest.mark.parametrize("statement", ATTACKS.values(), ids=ATTACKS)
def test_the_applications_role_is_refused(stack: Stack, statement: str) -> None:
    with psycopg.connect(stack.env["DATABASE_URL"]) as connection:
        who = connection.execute("SELECT current_user").fetchone()
        assert who == (APPLICATION,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)


def test_what_runs_is_not_told_the_owners_address(stack: Stack) -> None:
    assert "DATABASE_OWNER_URL" not in stack.env
    assert OWNER + "@" not in str(stack.env)


def test_a_deployment_is_told_of_a_role_that_could_do_more(stack: Stack) -> None:
    with psycopg.connect(stack.env["DATABASE_URL"]) as connection:
        superuser = psycopg.conninfo.make_conninfo(stack.env["DATABASE_URL"], user="postgres")
        assert connection.info.user == APPLICATION
    assert excess(stack.env["DATABASE_URL"]) == []
    assert excess(superuser) == ["it is a superuser"]
    assert excess(psycopg.conninfo.make_conninfo(superuser, user=OWNER)) == ["it owns the tables"]


def excess(address: str) -> list[str]:
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        return excess_of(cursor)
