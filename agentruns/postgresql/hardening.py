"""What is done to a database once its tables are as the migrations say, by their owner.

The application then works under a role of its own, which owns nothing: it can switch no trigger
off, empty no table, and delete or change nothing of what the ledger keeps.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import environ
import pgtrigger
from django.apps import apps
from django.conf import settings
from django.db import connections, models
from psycopg import sql

# pgtrigger lets whoever sets a variable of the session have its triggers keep still. Nobody needs
# that here, and it would be a way round all of them.
NOT_TO_BE_IGNORED = """
CREATE OR REPLACE FUNCTION public._pgtrigger_should_ignore(trigger_name name)
  RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false'"""

# No temporary tables either: a trigger would find one of the same name before the true one.
RIGHTS = """
REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role};
REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE ON TABLES TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role}"""


@contextmanager
def as_owner(alias: str) -> Iterator[None]:
    """Have the connection be of DATABASE_OWNER_URL meanwhile, if there is one."""
    if not settings.DATABASE_OWNER_URL:
        yield
        return
    connection: Any = connections[alias]
    at, before = connection.settings_dict, dict(connection.settings_dict)
    owner = environ.Env.db_url_config(settings.DATABASE_OWNER_URL)
    who = {name: owner.get(name, "") for name in ("USER", "PASSWORD", "HOST", "PORT")}
    connection.close()
    connection.close_pool()
    at.update(who, OPTIONS=before["OPTIONS"] | owner.get("OPTIONS", {}))
    try:
        yield
    finally:
        connection.close()
        connection.close_pool()
        at.update(before)


def harden(cursor: Any, role: str) -> None:
    """The triggers heed nobody, and `role` may do what the application does. As the tables' owner,
    after each migration; safe to repeat.
    """
    cursor.execute(NOT_TO_BE_IGNORED)
    cursor.execute("SELECT current_user, current_database()")
    owner, database = cursor.fetchone()
    if role in ("", owner):
        return
    names = {"role": sql.Identifier(role), "database": sql.Identifier(database)}
    cursor.execute(sql.SQL(RIGHTS).format(**names))
    for model in apps.get_models(include_auto_created=True):
        if refused := refused_always(model):
            text = f"REVOKE {', '.join(refused)} ON {{table}} FROM {{role}}"
            table = sql.Identifier(model._meta.db_table)
            cursor.execute(sql.SQL(text).format(table=table, **names))


def refused_always(model: type[models.Model]) -> list[str]:
    """What a trigger refuses for every row of the table, which needs no right then."""
    protecting = [
        each
        for each in getattr(model._meta, "triggers", [])
        if isinstance(each, pgtrigger.Protect) and each.condition is None
    ]
    said = " ".join(str(each.operation) for each in protecting)
    return [word for word in ("UPDATE", "DELETE") if word in said and "UPDATE OF" not in said]


def excess_of(cursor: Any) -> list[str]:
    """What this connection's role could do, and the application never needs to."""
    cursor.execute(
        """
        SELECT r.rolsuper OR r.rolbypassrls,
               EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = to_regclass('agentruns_ledgerevent')
                         AND pg_has_role(current_user, c.relowner, 'USAGE'))
          FROM pg_roles r WHERE r.rolname = current_user"""
    )
    is_superuser, is_owner = cursor.fetchone()
    found = ["it is a superuser"] if is_superuser else []
    return [*found, "it owns the tables"] if is_owner and not is_superuser else found
