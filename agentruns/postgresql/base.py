"""Django's PostgreSQL backend, but its pool gives out no connection that the server has ended.

After a restart of Postgres a process may hold dozens of dead connections, and each would cost a
task. The pool's own check (CONN_HEALTH_CHECKS) asks the server at every check-out, and waits one
second, then two, then four for each dead connection that it meets: a Stop would wait with it.
Here a look at the socket is enough: an idle connection has nothing to read but its end. (Or what
the server says to all, when it reads its configuration anew: then one too many is replaced.)
"""

import select
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """See above. Found by Django as the ENGINE `agentruns.postgresql`."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection that was alive a moment ago. Raises what Django's does."""
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


def _was_ended(connection: Any) -> bool:
    socket = select.poll()
    socket.register(connection.fileno(), select.POLLIN)
    return bool(socket.poll(0))
