"""Whoever undoes a call with many items asks the outside system about each of them."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from agentruns.models import Run
from compensation import saga
from tests.acting import Wanted, call, message, stopped
from tests.compensation.conftest import WorkerDied, step
from tests.tools.conftest import RunningWorld
from tools import registry
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)

CHANNELS = ("#team", "#finance")


def claimed_for(run: Run, die_at: Callable[[str], None]) -> timedelta:
    """How long the claim of the run's undo holds."""
    die_at("undo:1:started")
    with pytest.raises(WorkerDied):
        saga.run_next(run.pk)
    started = run.events.get(kind="undo.started").at
    until = step(run).claim_expires_at
    assert until is not None
    return until - started


@pytest.mark.parametrize("channels", [(), CHANNELS[:1], CHANNELS[:2]])
def test_each_item_has_its_time(
    owner: User,
    world: RunningWorld,
    settings: Settings,
    die_at: Callable[[str], None],
    channels: tuple[str, ...],
) -> None:
    settings.CLAIM_TTL = 1
    wanted: Wanted = ("chat.announce", {"channels": list(channels), "text": "We move."})
    run = stopped(owner, wanted if channels else message())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    tool = registry.get(call(run).tool)
    assert tool is not None
    answers = saga.ANSWERS_PER_UNDO + saga.ANSWERS_PER_ITEM * len(channels)
    held = claimed_for(run, die_at)
    assert abs(held.total_seconds() - tool.timeout * answers) < 1


def test_the_time_is_the_one_that_an_admin_has_given_the_tool(
    owner: User, world: RunningWorld, settings: Settings, die_at: Callable[[str], None]
) -> None:
    settings.CLAIM_TTL = 1
    run = stopped(owner, message())
    Tool.objects.filter(name=call(run).tool).update(time_limit=90)
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    held = claimed_for(run, die_at)
    assert abs(held.total_seconds() - 90 * saga.ANSWERS_PER_UNDO) < 1
