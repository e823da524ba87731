"""The same, by the real workers: a lost doorbell, trouble in the world, and the beat."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from agentruns.models import Agent, Run
from agentruns.protocol.stop import request_stop
from agentruns.services.stack import Stack
from compensation import saga
from tests.acting import acted, call, meeting, message, stopped, ticket
from tests.compensation.conftest import step, steps
from tools.world.record import effects

DEADLINE = 30.0  # seconds

pytestmark = pytest.mark.stack


@pytest.fixture
def stack_world(stack: Stack, settings: Settings) -> Iterator[str]:
    """The stack's world, also for the tools that this process plays by hand."""
    address = f"http://127.0.0.1:{stack.env['WORLD_HTTP_PORT']}"
    settings.CALDAV_URL = f"http://127.0.0.1:{stack.env['WORLD_CALDAV_PORT']}/demo/team/"
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


@pytest.mark.usefixtures("stack_db")
def test_what_is_reversible_is_undone_by_itself_after_a_stop(
    stack: Stack, stack_world: str
) -> None:
    """No doorbell of this process is heard there: the sweeper finds what is due."""
    ana = User.objects.get(username="ana")
    run = acted(ana, meeting(), message())
    Agent.objects.filter(pk=run.agent_id).update(auto_undo="reversible")
    request_stop(run.pk, by=ana)
    deadline = time.monotonic() + DEADLINE
    while call(run, 1).undo_state != "undone":
        assert time.monotonic() < deadline, [(s.state, s.detail) for s in steps(run)]
        time.sleep(0.02)
    Agent.objects.filter(pk=run.agent_id).update(auto_undo="offer")
    assert (step(run, 1).state, step(run, 1).request.requested_by) == ("undone", ana)
    assert call(run, 2).undo_state == ""
    kept = [e for e in effects(Path(stack.data_dir) / "world") if e.request_id == _key(run, 1)]
    assert [effect.removals for effect in kept] == [1]


def _key(run: Run, number: int) -> str:
    return call(run, number).request_id


def _wait_until_undone(run: Run) -> None:
    deadline = time.monotonic() + DEADLINE
    while {item.state for item in steps(run)} != {"undone"}:
        assert time.monotonic() < deadline, [(s.state, s.detail) for s in steps(run)]
        time.sleep(0.02)
