"""Draft requests of the demo world's git remote, in the shape of GitHub's REST API.

In the same journal as the repository's pushes, which is also their memory. As with the real one
there is no idempotency key: whose a request is, stands in a line of its text.
"""

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.gitcli import GitError, git
from tools.journal import Journal
from tools.world import journal
from tools.world.services import Answer

REPOSITORY = "demo/team"
_OWNER = REPOSITORY.partition("/")[0]
_INVALID = "Validation Failed"
_KEY = re.compile(r"^<!-- Request-Id: (\S+) -->$", re.MULTILINE)


class Pulls:
    """Every method is called from several threads, and returns a status with a JSON body."""

    def __init__(self, world_dir: Path) -> None:
        self._repo = world_dir / "repo.git"
        self._journal = Journal(world_dir / journal.GIT)
        self._lock = threading.Lock()
        self._pulls: dict[int, dict[str, Any]] = {}
        for entry in self._journal.entries():
            self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "draft_opened":
            self._pulls[entry["id"]] = {
                "number": entry["id"],
                "state": "open",
                "draft": True,
                "title": entry["title"],
                "body": entry.get("body", ""),
                "head": {"ref": entry["branch"], "sha": entry["commit"]},
                "base": {"ref": entry["base"]},
                "html_url": f"https://git.demo.example/{REPOSITORY}/pull/{entry['id']}",
                "created_at": entry["at"],
                "merged_at": None,
            }
        elif entry["event"] in ("draft_closed", "draft_merged"):
            pull = self._pulls[entry["id"]]
            pull["state"] = "closed"
            pull["merged_at"] = entry["at"] if entry["event"] == "draft_merged" else None

    def key_of(self, body: dict[str, Any]) -> str:
        """Whose the request is that is to be opened."""
        keys = _KEY.findall(str(body.get("body") or ""))
        return str(keys[-1]) if keys else ""

    def key_of_number(self, number: int) -> str:
        return self.key_of(self._pulls.get(number, {}))

    def open(self, body: dict[str, Any]) -> Answer:
        """One open request for each branch; both branches must be there."""
        wanted = ("title", "head", "base")
        if not all(isinstance(body.get(name), str) and body[name] for name in wanted):
            return 422, {"message": _INVALID, "errors": [f"missing: {', '.join(wanted)}"]}
        branch = body["head"].removeprefix(f"{_OWNER}:")
        commit, base = self._tip(branch), self._tip(body["base"])
        if not commit or not base:
            field = "base" if commit else "head"
            return 422, {"message": _INVALID, "errors": [{"field": field, "code": "invalid"}]}
        with self._lock:
            if any(
                pull["state"] == "open" and pull["head"]["ref"] == branch
                for pull in self._pulls.values()
            ):
                said = f"A pull request already exists for {_OWNER}:{branch}."
                return 422, {"message": _INVALID, "errors": [{"message": said}]}
            entry = self._journal.append(
                "draft_opened",
                id=len(self._pulls) + 1,
                key=self.key_of(body),
                branch=branch,
                base=body["base"],
                title=body["title"],
                body=str(body.get("body") or ""),
                commit=commit,
            )
            self._apply(entry)
            return 201, dict(self._pulls[entry["id"]])

    def change(self, number: int, body: dict[str, Any]) -> Answer:
        with self._lock:
            pull = self._pulls.get(number)
            if pull is None:
                return 404, {"message": "Not Found"}
            if body.get("state") != "closed":
                return 422, {"message": _INVALID, "errors": [{"field": "state"}]}
            if pull["state"] != "closed":
                self._apply(self._journal.append("draft_closed", id=number))
            return 200, dict(pull)

    def merge(self, number: int) -> Answer:
        """Only says so: the branches stay as they are."""
        with self._lock:
            if number not in self._pulls:
                return 404, {"message": "Not Found"}
            self._apply(self._journal.append("draft_merged", id=number))
            return 200, {"merged": True}

    def get(self, number: int) -> Answer:
        with self._lock:
            pull = self._pulls.get(number)
            return (200, dict(pull)) if pull else (404, {"message": "Not Found"})

    def list(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Newest first, by `state`, `head` (OWNER:branch), `per_page` and `page`."""
        state, head = query.get("state", "open"), query.get("head", "")
        size = min(int(query.get("per_page", 30)), 100)
        begin = (int(query.get("page", 1)) - 1) * size
        with self._lock:
            found = [
                dict(pull)
                for pull in reversed(self._pulls.values())
                if state in ("all", pull["state"])
                and head in ("", f"{_OWNER}:{pull['head']['ref']}")
            ]
        return found[begin : begin + size]

    def _tip(self, branch: str) -> str:
        ref = f"refs/heads/{branch}"
        try:
            return git("rev-parse", "--verify", "--quiet", ref, cwd=self._repo, timeout=30).strip()
        except GitError:
            return ""
