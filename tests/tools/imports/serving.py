"""MCP servers as processes of their own, and documents on a server of the tests' own."""

import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentruns.services.ports import free_ports

HERE = Path(__file__).parent
BOOK = {
    "name": "book",
    "title": "Book a room",
    "description": "Books a room for a day.",
    "inputSchema": {
        "type": "object",
        "properties": {"what": {"type": "string", "maxLength": 200}, "day": {"type": "integer"}},
        "required": ["what"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True, "destructiveHint": False},
}
LOGIN = {
    "name": "login",
    "description": "Signs in.",
    "inputSchema": {
        "type": "object",
        "properties": {"what": {"type": "string"}, "pin": {"type": "string", "format": "password"}},
        "required": ["what"],
    },
}


@dataclass
class McpServer:
    """`folder` has its orders and its journal. `address`: where it is, or how it is started."""

    folder: Path
    kind: str
    address: str

    @property
    def command(self) -> list[str]:
        return shlex.split(self.address)

    def order(self, **orders: Any) -> None:
        """Change what it offers, or how it behaves; the rest stays."""
        path = self.folder / "orders.json"
        before = json.loads(path.read_text()) if path.exists() else {}
        spare = path.with_suffix(".new")
        spare.write_text(json.dumps(before | orders))
        spare.replace(path)  # whole, for who reads it meanwhile

    def offers(self, *tools: dict[str, Any]) -> None:
        self.order(tools=list(tools))

    def journal(self, did: str = "") -> list[dict[str, Any]]:
        """What it was asked to do, and what it did."""
        path = self.folder / "journal.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [each for line in lines if (each := json.loads(line))["did"] == did or not did]

    def wait_for(self, did: str, seconds: float = 20.0) -> None:
        """Until it has done this."""
        end = time.monotonic() + seconds
        while not self.journal(did):
            assert time.monotonic() < end, f"the server has not {did}: {self.journal()}"
            time.sleep(0.02)


def on_streams(folder: Path, script: str = "mcp_server.py") -> McpServer:
    """A server that is started for each conversation."""
    command = shlex.join([sys.executable, str(HERE / script), str(folder)])
    return _ready(McpServer(folder, "mcp_stdio", command))


@contextmanager
def on_http(folder: Path) -> Iterator[McpServer]:
    """A server that runs until the end of the block."""
    (port,) = free_ports(1)
    server = _ready(McpServer(folder, "mcp_http", f"http://127.0.0.1:{port}/mcp"))
    command = [sys.executable, str(HERE / "mcp_server.py"), str(folder), str(port)]
    process = subprocess.Popen(command)
    try:
        _until_listening(port)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=10)


def _ready(server: McpServer) -> McpServer:
    server.order(mode="ok", tools=[BOOK])
    return server


def _until_listening(port: int) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end, "the server does not listen"
            time.sleep(0.05)
