"""Faults on request: what a server does wrong with the next effects, for tests and drills.

Kept in a file, because the git hooks run in processes of their own.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

Service = Literal["chat", "tickets", "smtp", "caldav", "git", "hooks", "authorizations", "payments"]
Mode = Literal["delay", "drop_after", "error_after", "late", "refuse", "busy"]

LONGEST = 600  # seconds


@dataclass(frozen=True)
class Fault:
    """`delay`: answers `seconds` late. `drop_after`: has the effect, then closes the connection.
    `error_after`: has the effect, then answers with an error. `late`:
    closes the connection, and has the effect `seconds` after that. `refuse`: refuses, no effect.
    `busy`: no effect now, and says that it may be asked again in `seconds` (git has no such word).

    Of payments, `authorizations` are what is reserved and let go, `payments` what moves money.

    With a `key` it is meant for the effect that carries it: as its idempotency key, or (mail) in
    an address.
    """

    service: Service
    mode: Mode
    seconds: float = 1.0
    times: int = 1
    key: str = ""


def parse(raw: object) -> Fault:
    """A fault from JSON. Raises ValueError with a sentence that says what is allowed."""
    if not isinstance(raw, dict):
        raise ValueError("a fault is an object: {service, mode, seconds, times, key}")
    if unknown := set(raw) - {"service", "mode", "seconds", "times", "key"}:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    for key, allowed in (("service", get_args(Service)), ("mode", get_args(Mode))):
        if raw.get(key) not in allowed:
            raise ValueError(f"{key} must be one of {', '.join(allowed)}")
    if (raw["service"], raw["mode"]) == ("git", "busy"):
        raise ValueError("git cannot be busy: choose refuse")
    seconds, times = raw.get("seconds", 1.0), raw.get("times", 1)
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST:
        raise ValueError(f"seconds must be a number from 0 to {LONGEST}")
    if not isinstance(times, int) or not 1 <= times <= 1000:
        raise ValueError("times must be a whole number from 1 to 1000")
    return Fault(raw["service"], raw["mode"], float(seconds), times, str(raw.get("key", "")))


class Faults:
    """The faults that are still to come, first in, first out per service."""

    def __init__(self, world_dir: Path) -> None:
        self._path = world_dir / "faults.json"

    def add(self, fault: Fault) -> None:
        with self._held() as waiting:
            waiting.append(asdict(fault))

    def clear(self) -> None:
        with self._held() as waiting:
            waiting.clear()

    def take(self, service: Service, *modes: Mode, key: str = "") -> Fault | None:
        """Use up one time of the next fault of this service (of these modes only, if given) that
        is meant for an effect which carries `key`.
        """
        if not self._path.exists() or self._path.stat().st_size <= len("[]"):
            return None
        with self._held() as waiting:
            for raw in waiting:
                is_meant = raw["service"] == service and raw["key"] in key
                if is_meant and (not modes or raw["mode"] in modes):
                    fault = Fault(**raw)
                    raw["times"] -= 1
                    waiting[:] = [item for item in waiting if item["times"] > 0]
                    return fault
        return None

    @contextmanager
    def _held(self) -> Iterator[list[dict[str, Any]]]:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with open(file, "r+", encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            waiting = json.loads(stream.read() or "[]")
            yield waiting
            stream.seek(0)
            stream.truncate()
            json.dump(waiting, stream)
