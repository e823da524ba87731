"""A receiver of anything that heeds an `Idempotency-Key`: by it a delivery is found and removed.

Its record is also its memory. Every method is called from several threads, and returns a status
with a JSON body.
"""

import threading
from pathlib import Path
from typing import Any

from tools.journal import Journal
from tools.world import journal
from tools.world.services import Answer


class Hooks:
    def __init__(self, world_dir: Path) -> None:
        self._journal = Journal(world_dir / journal.HOOKS)
        self._lock = threading.Lock()
        self._deliveries: dict[str, dict[str, Any]] = {}
        self._removed: set[str] = set()
        for entry in self._journal.entries():
            self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        key = entry["key"]
        if entry["event"] == "delivered":
            self._deliveries[key] = {"key": key, "body": entry["body"], "version": 1}
        elif entry["event"] == "replaced":
            self._deliveries[key] |= {
                "body": entry["body"],
                "version": self._deliveries[key]["version"] + 1,
            }
        else:
            del self._deliveries[key]
            self._removed.add(key)

    def deliver(self, body: dict[str, Any], key: str, tool: str) -> Answer:
        """Take it; the same key again is the same delivery, also after it was removed."""
        if not key:
            return 400, {"error": "send an Idempotency-Key"}
        with self._lock:
            if key in self._removed:
                return 410, {"error": "it was removed"}
            if key not in self._deliveries:
                self._apply(self._journal.append("delivered", key=key, body=body, tool=tool))
            return 200, dict(self._deliveries[key])

    def replace(self, key: str, body: dict[str, Any]) -> Answer:
        with self._lock:
            if key not in self._deliveries:
                return 404, {"error": "there is no such delivery"}
            self._apply(self._journal.append("replaced", key=key, body=body))
            return 200, dict(self._deliveries[key])

    def remove(self, key: str, if_match: str) -> Answer:
        with self._lock:
            found = self._deliveries.get(key)
            if found is None:
                return 404, {"error": "there is no such delivery"}
            if if_match and if_match.strip('"') != str(found["version"]):
                return 412, {"error": "it was replaced since"}
            self._apply(self._journal.append("removed", key=key))
            return 200, {"removed": key}

    def get(self, key: str) -> Answer:
        with self._lock:
            found = self._deliveries.get(key)
            return (200, dict(found)) if found else (404, {"error": "there is no such delivery"})

    def list(self) -> Answer:
        with self._lock:
            return 200, {"deliveries": [dict(each) for each in self._deliveries.values()]}
