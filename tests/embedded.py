"""The services that tests stand on: a real Postgres and a real Valkey of their own.

`DATABASE_URL` and `REDIS_URL` are honoured where they are given.
"""

import os

from agentruns.services.postgres import Postgres
from agentruns.services.scratch import ScratchFolder
from agentruns.services.valkey import Valkey


class TestServices:
    """Started before Django reads its settings, ended with the test run."""

    __test__ = False

    def __init__(self) -> None:
        self._folder = ScratchFolder()
        self._started: list[Postgres | Valkey] = []
        os.environ["DATA_DIR"] = str(self._folder.path)
        if "DATABASE_URL" not in os.environ:
            postgres = Postgres(self._folder.path, durable=False)
            postgres.start()
            self._started.append(postgres)
            os.environ["DATABASE_URL"] = postgres.url("agentruns")
        if "REDIS_URL" not in os.environ:
            valkey = Valkey(self._folder.path, durable=False)
            valkey.start()
            self._started.append(valkey)
            os.environ["REDIS_URL"] = valkey.url()

    def stop(self) -> None:
        """End what was started and delete its folder."""
        for server in reversed(self._started):
            server.stop()
        self._folder.remove()
