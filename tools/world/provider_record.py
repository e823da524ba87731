"""The model provider's own record: what it was asked, and when each token was generated.

`model.jsonl` gets a line when a request starts and one when it ends; `model-tokens.jsonl` a line
per token, at once, so that it holds even if the provider is killed. Reading needs only the files.
"""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

REQUESTS = "model.jsonl"
TOKENS = "model-tokens.jsonl"


@dataclass(frozen=True)
class ModelRequest:
    """One request as the provider saw it. `end` and `ended_at` are None while it generates.

    `end` is complete, closed_by_client, cut (a scenario's own break), refused (an HTTP error,
    nothing generated; `turn` is -1), server_stopped or error. `run` is what the client sent as
    X-Agentruns-Run, if anything.
    """

    request: str
    scenario: str
    turn: int
    run: str | None
    started_at: datetime
    ended_at: datetime | None = None
    end: str | None = None
    token_times: list[datetime] = field(default_factory=list)

    def tokens_after(self, moment: datetime) -> int:
        """How many tokens were generated later than `moment`."""
        return sum(at > moment for at in self.token_times)


class RequestLog:
    """Writes the record of one request, line by line."""

    def __init__(self, world_dir: Path, *, scenario: str, turn: int, run: str | None) -> None:
        self.request = uuid4().hex
        self._world_dir = world_dir
        self._about = {"request": self.request, "scenario": scenario, "turn": turn, "run": run}
        self._started_at = _now()
        self.tokens = 0
        self._append(REQUESTS, {"event": "start", **self._about, "started_at": self._started_at})

    def token(self) -> None:
        """Record one token, right before it is handed to the connection."""
        self.tokens += 1
        line = {"request": self.request, "n": self.tokens, "at": _now()}
        self._append(TOKENS, line)

    def end(self, how: str) -> None:
        """Record that nothing more is generated for this request, and why."""
        times = {"started_at": self._started_at, "ended_at": _now()}
        self._append(
            REQUESTS, {"event": "end", **self._about, **times, "tokens": self.tokens, "end": how}
        )

    def _append(self, name: str, line: dict[str, Any]) -> None:
        # One write of one line to a file opened for appending: lines of several streams
        # never mix.
        with (self._world_dir / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def model_requests(world_dir: Path) -> list[ModelRequest]:
    """Every request in the record, in the order in which they came."""
    found: dict[str, ModelRequest] = {}
    for line in _lines(world_dir / REQUESTS):
        if line["event"] == "start":
            found[line["request"]] = ModelRequest(
                request=line["request"],
                scenario=line["scenario"],
                turn=line["turn"],
                run=line["run"],
                started_at=datetime.fromisoformat(line["started_at"]),
            )
        else:
            ended_at = datetime.fromisoformat(line["ended_at"])
            begun = found[line["request"]]
            found[line["request"]] = replace(begun, ended_at=ended_at, end=line["end"])
    # Tokens after requests, so that a request with an end has all of its own. Those of a request
    # that began in between are left for the next reading.
    for line in _lines(world_dir / TOKENS):
        if line["request"] in found:
            found[line["request"]].token_times.append(datetime.fromisoformat(line["at"]))
    return list(found.values())


def _lines(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a file; the one being written right now is left for later."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _now() -> str:
    return datetime.now(UTC).isoformat()
