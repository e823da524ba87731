"""Case F2: back-off, a cap, and then a person, visibly."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agentruns.errors import WrongState
from agentruns.models import Run
from compensation import saga
from tests.acting import call, events, message, stopped, ticket
from tests.compensation.conftest import in_world, let_pauses_pass, step, undo_all
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)


def pause(run: Run) -> timedelta:
    """From now (the database's) until the next attempt."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now = cursor.fetchone()[0]
    return step(run).next_attempt_at - now


def test_the_pauses_grow_and_the_last_attempt_gives_up(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    world.fault("tickets", "refuse", times=saga.ATTEMPT_LIMIT)
    for attempt in range(1, saga.ATTEMPT_LIMIT):
        assert saga.run_next(run.pk)
        assert (step(run).state, step(run).attempts) == ("retrying", attempt)
        planned = timedelta(seconds=2 ** (attempt - 1))
        assert planned - timedelta(seconds=0.5) < pause(run) <= planned
        assert not saga.run_next(run.pk), "not before the pause is over"
        let_pauses_pass(run)
    assert saga.run_next(run.pk)
    given_up = step(run)
    assert (given_up.state, given_up.reason) == ("failed", "too_many_attempts")
    assert "403" in given_up.detail
    assert given_up.why == "It did not work, however often it was tried."
    let_pauses_pass(run)
    assert not saga.run_next(run.pk)
    assert saga.sweep() == 0
    (effect,) = in_world(world, run)
    assert effect.undone_at is None
    assert call(run).undo_state == ""
    assert len(events(run, "undo.failed")) == 1


def test_trouble_that_passes_ends_well(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    world.fault("tickets", "refuse", times=2)
    for _ in range(3):
        saga.run_next(run.pk)
        let_pauses_pass(run)
    assert (step(run).state, step(run).attempts, step(run).detail) == ("undone", 3, "")


@pytest.mark.parametrize("mode", ["drop_after", "error_after"])
def test_an_undo_whose_answer_was_lost_is_done_once(
    owner: User, world: RunningWorld, mode: str
) -> None:
    run = stopped(owner, message())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    world.fault("chat", mode)
    saga.run_next(run.pk)
    assert step(run).state == "retrying"
    (effect,) = in_world(world, run)
    let_pauses_pass(run)
    saga.run_next(run.pk)
    assert step(run).state == "undone"
    assert in_world(world, run) == [effect]


def test_earlier_calls_wait_while_a_step_is_retried_and_go_on_when_it_is_given_up(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, message(), ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    world.fault("tickets", "refuse", times=saga.ATTEMPT_LIMIT)
    undo_all(run)
    assert (step(run, 2).state, step(run, 1).state) == ("retrying", "planned")
    for _ in range(saga.ATTEMPT_LIMIT):
        let_pauses_pass(run)
        undo_all(run)
    assert (step(run, 2).state, step(run, 1).state) == ("failed", "undone")


def test_what_was_given_up_can_be_asked_for_again(
    owner: User, admin: User, world: RunningWorld
) -> None:
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    with pytest.raises(WrongState, match="not been given up"):
        saga.try_again(step(run).pk, by=admin)
    world.fault("tickets", "refuse", times=saga.ATTEMPT_LIMIT)
    for _ in range(saga.ATTEMPT_LIMIT):
        undo_all(run)
        let_pauses_pass(run)
    request = saga.try_again(step(run).pk, by=admin)
    undo_all(run)
    assert request.requested_by == admin
    assert (step(run).state, step(run).attempts) == ("undone", 1)


def test_the_sweep_rings_for_what_is_due_and_for_nothing_else(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, message(), ticket())
    assert saga.sweep() == 0
    saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    assert saga.sweep() == 1, "as if the doorbell was lost"
    world.fault("tickets", "refuse")
    undo_all(run)
    assert saga.sweep() == 0, "it pauses"
    let_pauses_pass(run)
    assert saga.sweep() == 1
    undo_all(run)
    assert saga.sweep() == 0
