"""Case F1, also with two requests, two workers, and workers that die."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from compensation import saga
from compensation.models import Compensation
from tests.acting import call, events, meeting, message, stopped, ticket
from tests.compensation.conftest import (
    WorkerDied,
    in_world,
    let_pauses_pass,
    step,
    steps,
    undo_all,
)
from tests.tools.conftest import RunningWorld
from tools.contract import UndoReceipt
from tools.journal import Journal
from tools.world import journal

pytestmark = pytest.mark.django_db(transaction=True)


def closings(world: RunningWorld) -> int:
    entries = Journal(world.folder / journal.TICKETS).entries()
    return sum(entry["event"] == "closed" for entry in entries)


def test_a_second_request_for_the_same_call_makes_no_second_undo(
    owner: User, admin: User, world: RunningWorld
) -> None:
    run = stopped(owner, ticket())
    first = saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    assert saga.request_undo(run.pk, by=admin, call_ids=[call(run).pk]) == first
    undo_all(run)
    assert saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk]) == first
    undo_all(run)
    assert len(steps(run)) == 1
    assert len(events(run, "undo.requested")) == 1


def test_a_request_that_overlaps_an_earlier_one_plans_only_what_is_new(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, ticket(), message())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 1).pk])
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 1).pk, call(run, 2).pk])
    assert sorted(item.call.number for item in steps(run)) == [1, 2]


def test_the_database_refuses_a_second_living_undo(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, ticket())
    request = saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    again = Compensation(request=request, call=call(run), position=2, created_at=run.created_at)
    with pytest.raises(IntegrityError, match="one_living_undo_per_call"), transaction.atomic():
        again.save(force_insert=True)


def test_a_second_worker_finds_the_step_taken(
    owner: User, world: RunningWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second message arrives between the first one's claim and its outcome."""
    run = stopped(owner, ticket(), message())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 1).pk, call(run, 2).pk])
    met = []

    def second(run_id: str, point: str) -> None:
        if point == "undo:2:started":
            met.append(saga.run_next(run_id))

    monkeypatch.setattr("agentruns.pausepoints.handler", second)
    assert saga.run_next(run.pk)
    assert met == [False]
    assert [item.attempts for item in steps(run)] == [1, 0]


@pytest.mark.parametrize("point", ["undo:1:started", "undo:1:sent"])
def test_a_worker_that_died_before_it_reported_leaves_one_undo_in_the_world(
    owner: User, world: RunningWorld, die_at: Callable[[str], None], point: str
) -> None:
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    before = closings(world)
    die_at(point)
    with pytest.raises(WorkerDied):
        saga.run_next(run.pk)
    assert step(run).state == "running"
    assert not saga.run_next(run.pk), "its claim still holds"
    let_pauses_pass(run)
    assert saga.sweep() == 1
    undo_all(run)
    assert (step(run).state, step(run).attempts) == ("undone", 2)
    assert closings(world) - before == 1
    (effect,) = in_world(world, run)
    assert effect.undone_at is not None
    assert len(events(run, "undo.lapsed")) == 1


def test_a_worker_that_always_dies_is_given_up(
    owner: User, world: RunningWorld, die_at: Callable[[str], None]
) -> None:
    run = stopped(owner, meeting())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    for _ in range(saga.ATTEMPT_LIMIT):
        die_at("undo:1:started")
        with pytest.raises(WorkerDied):
            saga.run_next(run.pk)
        let_pauses_pass(run)
    assert not saga.run_next(run.pk)
    assert (step(run).state, step(run).reason) == ("failed", "no_report")


@pytest.mark.parametrize("meanwhile", ["retried", "given up", "asked for anew"])
def test_a_report_that_comes_late_is_the_truth_all_the_same(
    owner: User, world: RunningWorld, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """The worker was slow, not dead: its claim ran out, but what it did is done."""
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    claims: list[saga.Claim] = []
    settle = saga._settle
    monkeypatch.setattr(saga, "_settle", lambda claim, outcome: claims.append(claim))
    rounds = 1 if meanwhile == "retried" else saga.ATTEMPT_LIMIT
    for _ in range(rounds):
        saga.run_next(run.pk)
        let_pauses_pass(run)
    if meanwhile != "retried":
        saga.run_next(run.pk)
        assert step(run).state == "failed"
    if meanwhile == "asked for anew":
        saga.try_again(step(run).pk, by=owner)
    settle(claims[0], UndoReceipt({}, "Closed."))
    assert step(run).state == "undone"
    assert call(run).undo_state == "undone"
    settle(claims[0], UndoReceipt({}, "Closed."))
    assert len(events(run, "undo.landed")) == 1
    assert len(events(run, "undo.repeated")) == 1
    assert not saga.run_next(run.pk)
