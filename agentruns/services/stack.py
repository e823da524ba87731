"""The whole stack on one machine: servers, web, workers, beat and the demo world.

One supervisor for `manage.py up`, for tests and for drills: whoever runs it has every process.
"""

import os
import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from agentruns.services import discover
from agentruns.services.environment import isolated
from agentruns.services.errors import AlreadyUp, PortInUse, ServiceError
from agentruns.services.ports import LOOPBACK, free_ports, is_free, kept_ports
from agentruns.services.postgres import APPLICATION, OWNER, SHOP, Postgres, require_postgres
from agentruns.services.processes import MARK, Process, end_leftovers
from agentruns.services.programs import BASE_DIR, MANAGE, WORLD_PORTS, programs, readiness
from agentruns.services.valkey import Valkey
from tools.world.database import DEMO_DATABASE

DATABASE = "agentruns"
USUAL_PORTS = dict(zip(WORLD_PORTS, (8801, 8802, 8803), strict=True))
# Nobody else's business. (Postgres makes its own: it may run as another account.)
FOLDERS = ("beat", "logs", "pause", "sockets", "staticfiles", "valkey", "world")
SOCKET_PATH_LENGTH = 100  # bytes; the systems stop at 104 to 108
READY_TIMEOUT = 120.0  # seconds
GRACE = 5.0  # seconds that the programs have to end by themselves


class Stack:
    """Everything that runs, on one data folder. `start` returns once all of it is ready.

    `env` is set for every process; with `apart`, nothing else of this process's environment says
    where anything is (see `isolated`). Where `DATABASE_URL` or `REDIS_URL` is given there, that
    server is used and left alone, else one is embedded. `at_once`: how many tasks a worker has
    at the same time, by its name, where that is not the usual number.
    `on_line(name, line)` gets what the programs print; `on_give_up(name)` is told when one of them
    cannot be kept alive. Their output is in `data_dir/logs` in any case.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        web: bool = True,
        workers: bool = True,
        world: bool = True,
        demo: bool = True,
        durable: bool = True,
        apart: bool = True,
        env: Mapping[str, str] | None = None,
        at_once: Mapping[str, int] | None = None,
        on_line: Callable[[str, str], None] | None = None,
        on_give_up: Callable[[str], None] | None = None,
    ) -> None:
        self.data_dir = data_dir.resolve()
        self.env = (isolated(os.environ) if apart else dict(os.environ)) | dict(env or {})
        self.env |= {"DATA_DIR": str(self.data_dir), MARK: str(self.data_dir)}
        self.env |= {"PYTHONUNBUFFERED": "1", "DEMO": str(int(demo))}
        if demo:
            # A drill that finds this stack up can steer its workers.
            self.env.setdefault("PAUSE_DIR", str(self.data_dir / "pause"))
            # The demo's world acts at once, or as late as a drill has it: half a minute is long.
            self.env.setdefault("LOOKUP_HORIZON_SCALE", "0.1")
        self._parts = {"web": web, "workers": workers, "world": world}
        self._durable = durable
        self._at_once = at_once
        self._on_line = on_line
        self._on_give_up = on_give_up
        self._lock = discover.StackLock(self.data_dir)
        self._postgres: Postgres | None = None
        self._valkey: Valkey | None = None
        # Only for what prepares the database: nothing that runs has it.
        self._owner_url = self.env.pop("DATABASE_OWNER_URL", "")
        self._programs: dict[str, Process] = {}
        self._ready_at: datetime | None = None
        # Signs the demo's sign-in links. Not in the environment: tools' programs inherit that.
        self.link_secret = secrets.token_urlsafe(32) if demo else ""
        self._describing = threading.Lock()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def base_url(self) -> str:
        """The address of the pages."""
        return f"http://{LOOPBACK}:{self.env['PORT']}"

    @property
    def pids(self) -> dict[str, int]:
        """The process number of everything that is alive, by name."""
        return {name: pid for name, process in self._all().items() if (pid := process.pid)}

    def start(self) -> None:
        """Start all of it; raise ServiceError, with nothing left running, if that fails."""
        for name in FOLDERS:
            (self.data_dir / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._lock.acquire():
            at = discover.running_services(self.data_dir).get("base_url", "starting or ending")
            raise AlreadyUp(f"agentruns is up on {self.data_dir} already ({at}).", at=at)
        try:
            end_leftovers(self.data_dir)
            self._choose_ports()
            self._start_servers()
            self.manage("prepare", env={"DATABASE_OWNER_URL": self._owner_url})
            self._start_programs()
            self._wait_until_ready()
            self._ready_at = datetime.now(UTC)
            self._describe()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything, in order, within about ten seconds. Data stays."""
        with self._describing:
            self._ready_at = None
            discover.undescribe(self.data_dir)
        deadline = time.monotonic() + GRACE
        for process in self._programs.values():
            process.begin_stop()
        for process in self._programs.values():
            process.stop(grace=max(0.0, deadline - time.monotonic()))
        self._programs.clear()
        for server in (self._valkey, self._postgres):
            if server is not None:
                server.stop()
        self._valkey = self._postgres = None
        end_leftovers(self.data_dir)  # a start that was broken off may not know of all
        self._lock.release()

    def restart(self, name: str) -> None:
        """End one part in good order and start it again; returns once it is ready."""
        self._all()[name].restart()
        self.wait_for(name)

    def kill(self, name: str) -> None:
        """SIGKILL one part with its children. It comes back by itself: see `wait_for`."""
        self._all()[name].kill()

    def wait_for(self, name: str) -> None:
        """Wait until this part is ready, also when it has just been killed."""
        for server, own in ((self._postgres, "postgres"), (self._valkey, "valkey")):
            if server is not None and own == name:
                return server.wait_until_ready()
        return self._wait_until_ready([name], forgiving=True)

    def manage(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """Run a `manage.py` command on this stack; return what it printed. `env`: for it alone."""
        done = subprocess.run(
            [*MANAGE, *arguments],
            env=self.env | dict(env or {}),
            cwd=BASE_DIR,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ServiceError(
                f"“manage.py {' '.join(arguments)}” failed:\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def _all(self) -> dict[str, Process]:
        servers = {"postgres": self._postgres, "valkey": self._valkey}
        return self._programs | {
            name: server.process for name, server in servers.items() if server and server.process
        }

    def _choose_ports(self) -> None:
        port = self.env.setdefault("PORT", str(free_ports(1)[0]))
        if self._parts["web"] and not is_free(int(port)):
            raise PortInUse(
                f"Port {port} is in use by another program. "
                f"End that program, or choose another port: make up PORT={int(port) + 1}"
            )
        self.env.setdefault("PAGES_SOCKET", self._socket_path())
        usual = USUAL_PORTS
        if not self._durable:
            usual = dict(zip(WORLD_PORTS, free_ports(len(WORLD_PORTS)), strict=True))
        # The world keeps its ports from start to start: receipts in the ledger name them.
        for name, kept in kept_ports(self.data_dir / "ports.json", usual).items():
            self.env.setdefault(name, str(kept))

    def _socket_path(self) -> str:
        path = str(self.data_dir / "sockets" / "pages.sock")
        if len(os.fsencode(path)) <= SOCKET_PATH_LENGTH:
            return path
        return str(Path(tempfile.mkdtemp(prefix="agentruns-sockets-")) / "pages.sock")

    def _start_servers(self) -> None:
        if "DATABASE_URL" in self.env:
            require_postgres(self.env["DATABASE_URL"])
        else:
            self._postgres = Postgres(self.data_dir, durable=self._durable)
            self._postgres.start()
            self._owner_url = self._postgres.ensure_database(DATABASE, owner=OWNER)
            self._postgres.ensure_role(APPLICATION)
            self.env["DATABASE_URL"] = self._postgres.url(DATABASE, role=APPLICATION)
            if self.env["DEMO"] == "1" and "SQL_TOOL_URL" not in self.env:
                shop = self._postgres.ensure_database(DEMO_DATABASE, owner=SHOP)
                self.env["SQL_TOOL_URL"] = shop
        if "REDIS_URL" in self.env:
            _require_redis(self.env["REDIS_URL"])
        else:
            self._valkey = Valkey(self.data_dir, durable=self._durable)
            self._valkey.start()
            self.env["REDIS_URL"] = self._valkey.url()
        for process in self._all().values():
            process.on_start = lambda _name: self._describe()
            process.on_give_up = self._on_give_up

    def _start_programs(self) -> None:
        for spec in programs(self.data_dir, self.env, **self._parts, at_once=self._at_once):
            process = Process(
                spec,
                on_line=self._on_line,
                on_start=lambda _name: self._describe(),
                on_give_up=self._on_give_up,
            )
            self._programs[spec.name] = process
            process.start()

    def _wait_until_ready(self, names: list[str] | None = None, *, forgiving: bool = False) -> None:
        names = names or list(self._programs)
        unready = readiness(self.env, names)
        deadline = time.monotonic() + READY_TIMEOUT
        while unready:
            for name in names:
                process = self._programs[name]
                if process.deaths and not forgiving:
                    raise ServiceError(f"“{name}” ended while starting:\n{process.last_words()}")
                if name in unready and unready[name]():
                    del unready[name]
            if time.monotonic() > deadline:
                laggard = next(iter(unready))
                words = self._programs[laggard].last_words()
                raise ServiceError(f"“{laggard}” does not get ready:\n{words}")
            time.sleep(0.05)

    def _describe(self) -> None:
        """Keep `up.json` true; nothing is said before all is ready, nor once the end began."""
        with self._describing:
            if self._ready_at is not None:
                discover.describe(self.data_dir, self._description(self._ready_at))

    def _description(self, ready_at: datetime) -> dict[str, Any]:
        return {
            **{name.lower(): int(self.env[name]) for name in WORLD_PORTS},
            "base_url": self.base_url,
            "link_secret": self.link_secret,
            "port": int(self.env["PORT"]),
            "database_url": self.env["DATABASE_URL"],
            "database_owner_url": self._owner_url,
            "redis_url": self.env["REDIS_URL"],
            "sql_tool_url": self.env.get("SQL_TOOL_URL", ""),
            "pause_dir": self.env.get("PAUSE_DIR", ""),
            "parts": [name for name, is_on in self._parts.items() if is_on],
            "pid": os.getpid(),
            "pids": self.pids,
            "ready_at": ready_at.isoformat(),
        }


def _require_redis(url: str) -> None:
    try:
        redis.Redis.from_url(url, socket_connect_timeout=3).ping()
    except (redis.RedisError, ValueError) as error:
        raise ServiceError(f"The server of REDIS_URL does not answer: {error}") from error
