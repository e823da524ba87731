"""Runs as the protocol made them, for a test to break."""

import pytest

from agentruns.models import Run
from compensation import saga
from tests.agentruns.steps import Steps, now


@pytest.fixture
def run(steps: Steps) -> Run:
    """A stopped run: one call landed, two never started."""
    run, calls = steps.running("test.book", "test.post", "test.send")
    steps.act(calls[0])
    steps.stop(run)
    return now(run)


@pytest.fixture
def undone(steps: Steps) -> Run:
    """A stopped run whose two calls have been undone."""
    run, calls = steps.running("test.book", "test.post")
    for call in calls:
        steps.act(call)
    steps.stop(run)
    saga.request_undo(run.pk, by=steps.owner, call_ids=[call.pk for call in calls])
    while saga.run_next(run.pk):
        pass
    return now(run)


@pytest.fixture
def approved(steps: Steps) -> Run:
    """A run whose one call was approved by a person, and has landed."""
    run, (call,) = steps.running("test.send")
    steps.approve(call)
    assert steps.act(call).state == "landed"
    return now(run)


@pytest.fixture
def batch(steps: Steps) -> Run:
    """A run with a call of three items, all of them out."""
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.batch", count=3)
    steps.finish(lease)
    assert steps.act(call).state == "landed"
    return now(run)
