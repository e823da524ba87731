"""Steps not begun are dropped, the one in flight finishes (protocol §10)."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from agentruns.errors import NotAllowed, NotFound, WrongState
from agentruns.models import Run
from compensation import saga
from tests.acting import call, events, message, stopped, ticket
from tests.compensation.conftest import WorkerDied, in_world, let_pauses_pass, step, steps, undo_all
from tests.pausing import Pauses, in_background
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(owner: User, world: RunningWorld) -> Run:
    """A message and a ticket of a stopped run, both to be undone."""
    run = stopped(owner, message(), ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    return run


def states(run: Run) -> list[tuple[str, str]]:
    """State and reason of each call's latest step, in the order of the calls."""
    found = [step(run, number) for number in (1, 2)]
    return [(each.state, each.reason) for each in found]


def test_what_has_not_begun_is_dropped(run: Run, owner: User, world: RunningWorld) -> None:
    saga.run_next(run.pk)
    saga.stop_undo(run.pk, by=owner)
    undo_all(run)
    assert states(run) == [("dropped", "stopped"), ("undone", "")]
    assert [each.undone_at is None for each in in_world(world, run)] == [True, False]


def test_the_one_in_flight_finishes(
    run: Run, owner: User, world: RunningWorld, pauses: Pauses
) -> None:
    hold = pauses.hold(run.pk, "undo:2:started")
    with in_background(lambda: saga.run_next(run.pk)) as worker:
        hold.wait()
        saga.stop_undo(run.pk, by=owner)
        assert states(run) == [("dropped", "stopped"), ("running", "")]
        hold.release()
        worker.result()
    undo_all(run)
    assert states(run) == [("dropped", "stopped"), ("undone", "")]
    (stop,) = events(run, "undo.stopped")
    assert stop["in_flight"] == [call(run, 2).pk]


def test_the_one_in_flight_is_not_tried_again(
    run: Run, owner: User, world: RunningWorld, pauses: Pauses
) -> None:
    world.fault("tickets", "refuse")
    hold = pauses.hold(run.pk, "undo:2:started")
    with in_background(lambda: saga.run_next(run.pk)) as worker:
        hold.wait()
        saga.stop_undo(run.pk, by=owner)
        hold.release()
        worker.result()
    let_pauses_pass(run)
    undo_all(run)
    assert states(run) == [("dropped", "stopped"), ("dropped", "stopped_after_trouble")]
    assert "403" in step(run, 2).detail


def test_what_waits_for_another_try_has_not_begun(
    run: Run, owner: User, world: RunningWorld
) -> None:
    world.fault("tickets", "refuse")
    saga.run_next(run.pk)
    assert step(run, 2).state == "retrying"
    saga.stop_undo(run.pk, by=owner)
    let_pauses_pass(run)
    undo_all(run)
    assert states(run) == [("dropped", "stopped"), ("dropped", "stopped_after_trouble")]
    assert "403" in step(run, 2).detail, "the trouble is kept"
    assert saga.sweep() == 0


@pytest.mark.parametrize("point", ["undo:2:started", "undo:2:sent"])
def test_of_one_whose_worker_died_nobody_knows_and_it_is_not_begun_again(
    run: Run, owner: User, die_at: Callable[[str], None], point: str
) -> None:
    die_at(point)
    with pytest.raises(WorkerDied):
        saga.run_next(run.pk)
    saga.stop_undo(run.pk, by=owner)
    let_pauses_pass(run)
    assert saga.sweep() == 1
    undo_all(run)
    assert states(run) == [("dropped", "stopped"), ("dropped", "unknown_when_stopped")]
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 2).pk])
    undo_all(run)
    assert step(run, 2).state == "undone", "asked for anew, it is done once"


def test_twenty_stops_are_one_stop(run: Run, owner: User, admin: User) -> None:
    for person in (owner, admin) * 10:
        saga.stop_undo(run.pk, by=person)
    assert len(events(run, "undo.stopped")) == 1
    request = run.undo_requests.get()
    assert (request.stopped_by, request.stopped_at is not None) == (owner, True)


def test_a_stop_of_what_is_over_changes_nothing(run: Run, owner: User) -> None:
    undo_all(run)
    saga.stop_undo(run.pk, by=owner)
    assert states(run) == [("undone", ""), ("undone", "")]
    assert events(run, "undo.stopped") == []


def test_where_nobody_asked_for_an_undo_there_is_none_to_stop(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, ticket())
    with pytest.raises(WrongState, match="Nothing of this run is being undone"):
        saga.stop_undo(run.pk, by=owner)


def test_only_who_may_undo_may_stop_it(run: Run, outsider: User, reviewer: User) -> None:
    with pytest.raises(NotFound):
        saga.stop_undo(run.pk, by=outsider)
    with pytest.raises(NotAllowed):
        saga.stop_undo(run.pk, by=reviewer)
    assert [each.state for each in steps(run)] == ["planned", "planned"]


def test_what_was_dropped_can_be_asked_for_again(
    run: Run, owner: User, world: RunningWorld
) -> None:
    saga.stop_undo(run.pk, by=owner)
    saga.try_again(step(run, 1).pk, by=owner)
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 2).pk])
    undo_all(run)
    assert states(run) == [("undone", ""), ("undone", "")]
    assert [each.removals for each in in_world(world, run)] == [1, 1]


def test_a_worker_that_comes_right_after_the_stop_finds_nothing_to_do(
    run: Run, owner: User, pauses: Pauses
) -> None:
    hold = pauses.hold(run.pk, "undo:stopped")
    with in_background(lambda: saga.stop_undo(run.pk, by=owner)) as stop:
        hold.wait()
        assert not saga.run_next(run.pk)
        hold.release()
        stop.result()
    assert states(run) == [("dropped", "stopped"), ("dropped", "stopped")]
