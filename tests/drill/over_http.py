"""A program that uses the stack over its REST API, and waits for what it is told."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
from django.contrib.auth.models import User
from knox.models import AuthToken

from agentruns.services.stack import Stack
from tools.world.provider_record import ModelRequest, model_requests
from tools.world.record import Effect, effects

PATIENCE = 90.0  # seconds

Data = dict[str, Any]


class Program:
    """Acts for `ana`. Use it with the fixture `stack_db`, which its token is made through.

    `base_url` is where, if not at the stack's own web server.
    """

    def __init__(self, stack: Stack, *, base_url: str = "") -> None:
        self.world_dir = Path(stack.data_dir) / "world"
        self.world_url = f"http://127.0.0.1:{stack.env['WORLD_HTTP_PORT']}"
        token = AuthToken.objects.create(User.objects.get(username="ana"))[1]
        headers = {"Authorization": f"Token {token}"}
        self._http = httpx2.Client(
            base_url=f"{base_url or stack.base_url}/api/v1", headers=headers, timeout=PATIENCE
        )

    def start(self, agent: str) -> str:
        """Start a run; its id."""
        answer = self._http.post("/runs", json={"agent": agent, "goal": "Please do it."})
        return str(answer.raise_for_status().json()["id"])

    def stop(self, run_id: str) -> Data:
        """The answer to Stop."""
        answer = self._http.post(f"/runs/{run_id}/cancel", json={})
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def read(self, run_id: str) -> Data:
        return dict(self._http.get(f"/runs/{run_id}").raise_for_status().json())

    def wait(self, run_id: str, *statuses: str) -> Data:
        """The run, once it has one of these statuses."""
        return until(
            lambda: self.read(run_id),
            lambda run: run["status"] in statuses,
        )

    def generating(self, run_id: str, turn: int, tokens: int = 1) -> ModelRequest:
        """The provider's record of a turn, once it has generated some tokens of it."""
        return until(
            lambda: [r for r in self.generated(run_id) if r.turn == turn],
            lambda found: bool(found) and len(found[-1].token_times) >= tokens,
        )[-1]

    def generated(self, run_id: str) -> list[ModelRequest]:
        return [r for r in model_requests(self.world_dir) if r.run == run_id]

    def effects(self, keys: set[str]) -> list[Effect]:
        """The effects in the world with one of these idempotency keys."""
        return [effect for effect in effects(self.world_dir) if effect.request_id in keys]

    def fault(self, service: str, mode: str) -> None:
        """Have a server of the world do this wrong with its next effect."""
        fault = {"service": service, "mode": mode}
        httpx2.post(f"{self.world_url}/_world/faults", json=fault).raise_for_status()

    def close(self) -> None:
        self._http.close()
        httpx2.delete(f"{self.world_url}/_world/faults").raise_for_status()


def until(look: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """What `look` returns, once that holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds(seen := look()):
        assert time.monotonic() < deadline, f"still so after {PATIENCE} s: {seen}"
        time.sleep(0.02)
    return seen
