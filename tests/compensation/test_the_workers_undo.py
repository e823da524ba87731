"""The same, by the real workers: a lost doorbell, trouble in the world, and the beat."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from agentruns.models import Run
from agentruns.services.stack import Stack
from compensation import saga
from tests.acting import call, message, stopped, ticket
from tests.compensation.conftest import step, steps
from tools.world.record import effects

DEADLINE = 30.0  # seconds

pytestmark = pytest.mark.stack


@pytest.fixture
def stack_world(stack: Stack, settings: Settings) -> Iterator[str]:
    """The stack's world, also for the tools that this process plays by hand."""
    address = f"http://127.0.0.1:{stack.env['WORLD_HTTP_PORT']}"
    settings.CHAT_URL = f"{address}/chat"
    settings.TICKETS_URL = f"{address}/tickets"
    yield address
    httpx2.delete(f"{address}/_world/faults").raise_for_status()


@pytest.mark.usefixtures("stack_db")
def test_an_undo_whose_doorbell_was_lost_is_found_tried_again_and_done(
    stack: Stack, stack_world: str
) -> None:
    """This process rings at a broker that the stack's workers do not listen to."""
    ana = User.objects.get(username="ana")
    run = stopped(ana, message(), ticket())
    fault = {"service": "tickets", "mode": "error_after"}
    httpx2.post(f"{stack_world}/_world/faults", json=fault).raise_for_status()
    saga.request_undo(run.pk, by=ana, call_ids=[call(run, 1).pk, call(run, 2).pk])
    _wait_until_undone(run)
    assert [step(run, 2).attempts, step(run, 1).attempts] == [2, 1]
    keys = set(run.calls.values_list("request_id", flat=True))
    done = [e for e in effects(Path(stack.data_dir) / "world") if e.request_id in keys]
    assert [effect.undone_at is not None for effect in done] == [True, True]


def _wait_until_undone(run: Run) -> None:
    deadline = time.monotonic() + DEADLINE
    while {item.state for item in steps(run)} != {"undone"}:
        assert time.monotonic() < deadline, [(s.state, s.detail) for s in steps(run)]
        time.sleep(0.02)
