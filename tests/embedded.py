"""The services that tests stand on: a real Postgres and a real Valkey of their own.

`DATABASE_URL` and `REDIS_URL` are honoured where they are exported; nothing else that is set on
this machine says whom the tools under test speak to.
"""

import os

import psycopg
from psycopg import sql

from agentruns.services.environment import isolated
from agentruns.services.postgres import Postgres
from agentruns.services.scratch import ScratchFolder
from agentruns.services.valkey import Valkey
from tools.world.database import DEMO_DATABASE

# Of several processes of one test run, this one; "" if there is one only.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")


class TestServices:
    """Started before Django reads its settings, ended with the test run."""

    __test__ = False

    def __init__(self) -> None:
        self.folder = ScratchFolder()
        self._started: list[Postgres | Valkey] = []
        given = {
            name: os.environ[name] for name in ("DATABASE_URL", "REDIS_URL") & os.environ.keys()
        }
        # Whitenoise warns of a static root that is not there, and warnings are errors here.
        (self.folder.path / "staticfiles").mkdir(exist_ok=True)
        shop = os.environ.get("SQL_TOOL_URL", "") if WORKER else ""
        outside = isolated(os.environ)
        os.environ.clear()
        os.environ.update(outside, DATA_DIR=str(self.folder.path), **given)
        # One person of a test starts more than anybody by hand.
        os.environ.update(RUNS_PER_PERSON="0", STARTS_PER_MINUTE="0")
        if "DATABASE_URL" not in os.environ:
            postgres = Postgres(self.folder.path, durable=False)
            postgres.start()
            self._started.append(postgres)
            os.environ["DATABASE_URL"] = postgres.url("agentruns")
            os.environ["SQL_TOOL_URL"] = postgres.ensure_database(DEMO_DATABASE)
        elif shop:
            os.environ["SQL_TOOL_URL"] = _of_this_worker(shop)
        if "REDIS_URL" not in os.environ:
            valkey = Valkey(self.folder.path, durable=False)
            valkey.start()
            self._started.append(valkey)
            os.environ["REDIS_URL"] = valkey.url()

    def stop(self) -> None:
        """End what was started and delete its folder."""
        for server in reversed(self._started):
            server.stop()
        self.folder.remove()


def _of_this_worker(url: str) -> str:
    """The processes of a test run share a server. As each has a database of its own for the ledger,
    so for what `sql.execute` changes.
    """
    name = f"{DEMO_DATABASE}_{WORKER}"
    with psycopg.connect(url, autocommit=True) as database:
        known = database.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if known.fetchone() is None:
            database.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return url.replace(f"/{DEMO_DATABASE}?", f"/{name}?")
