"""Django's PostgreSQL backend, but its pool gives out no connection that the server has ended.

After a restart of Postgres a process may hold dozens of dead connections, and each would cost a
task. The pool's own check (CONN_HEALTH_CHECKS) asks the server at every check-out, and waits one
second, then two, then four for each dead connection that it meets: a Stop would wait with it.
Here a look at the socket is enough: an idle connection has nothing to read but its end. (Or what
the server says to all, when it reads its configuration anew: then one too many is replaced.)

After a failover the old primary may stay up as a read-only standby: its connections look alive,
reads work, and each write fails. Such a database is away like one that does not answer, so that
is an OperationalError too; and the pool replaces all its connections.
"""

import select
import time
from types import TracebackType
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.errors import ReadOnlySqlTransaction

RENEWED_APART = 1.0  # seconds between two renewals of a pool


class TakesNoWrites(OperationalError):
    """The server only reads at present."""


class Errors(DatabaseErrorWrapper):
    """Django's translation of the driver's errors, with one of its own (see above)."""

    wrapper: "DatabaseWrapper"

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, ReadOnlySqlTransaction):
            self.wrapper.errors_occurred = True
            self.wrapper.is_read_only = True
            raise TakesNoWrites(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """See above. Found by Django as the ENGINE `agentruns.postgresql`.

    `is_read_only`: the server of the open connection takes no writes, as far as was noticed.
    """

    is_read_only = False
    _renewed_at = 0.0

    @cached_property
    def wrap_database_errors(self) -> Errors:
        """Where errors are translated; a name of Django's."""
        return Errors(self)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection that was alive a moment ago. Raises what Django's does."""
        self.is_read_only = False
        connection = super().get_new_connection(conn_params)
        if self.pool is None:
            return connection
        for _each in range(self.pool.max_size):
            if not _was_ended(connection):
                break
            connection.close()
            self.pool.putconn(connection)  # which replaces it by a new one
            connection = super().get_new_connection(conn_params)
        return connection

    def _close(self) -> Any:
        if self.is_read_only and self.pool is not None and self.connection is not None:
            self.connection.close()  # the pool replaces it
            self._renew_pool()
        return super()._close()  # type: ignore[misc]

    def _renew_pool(self) -> None:
        """Have the pool's other connections replaced too. At most once a second: a database may
        stay read-only for longer than that.
        """
        now = time.monotonic()
        if now - DatabaseWrapper._renewed_at > RENEWED_APART:
            DatabaseWrapper._renewed_at = now
            self.pool.drain()


def must_take_writes() -> None:
    """Raises TakesNoWrites if the database would refuse a write, and what any query raises."""
    wrapper = cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS])
    with wrapper.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        answer = cursor.fetchone()
    if answer != ("off",):
        wrapper.is_read_only = True
        raise TakesNoWrites("the database takes no writes")


def _was_ended(connection: Any) -> bool:
    socket = select.poll()
    socket.register(connection.fileno(), select.POLLIN)
    return bool(socket.poll(0))
