"""Who acts for people in a drill or a soak asks again while the database is away, as they would."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connection

AWAY = (DatabaseError, InterfaceError)
PATIENCE = 60.0  # seconds in which they ask again
PAUSE = 0.2

T = TypeVar("T")


def patiently(verb: Callable[[], T]) -> T:
    """Do it, and again while the database is away; each time on a connection that works. So it
    must bear being done twice. Raises what it raises, in the end also that.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return verb()
        except AWAY:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE)
        finally:
            connection.close()
