"""Ports on the loopback address."""

import contextlib
import json
import socket
from collections.abc import Mapping
from pathlib import Path

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server of ours could listen on this port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections linger in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens on."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [probe.getsockname()[1] for probe in probes]


def accepts(port: int, timeout: float = 0.5) -> bool:
    """Whether somebody listens on this port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout).close()
    except OSError:
        return False
    return True


def kept_ports(note: Path, usual: Mapping[str, int]) -> dict[str, int]:
    """The ports of last time, noted in a file; at first, or where one is taken now, others."""
    try:
        wanted = {**usual, **json.loads(note.read_text())}
    except (OSError, ValueError):
        wanted = dict(usual)
    others = dict(zip(usual, free_ports(len(usual)), strict=True))
    ports = {name: wanted[name] if is_free(wanted[name]) else others[name] for name in usual}
    note.write_text(json.dumps(ports))
    return ports
