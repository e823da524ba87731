import pytest
from django.contrib.auth.models import User

from compensation import saga
from tests.acting import call, events, meeting, message, stopped, ticket
from tests.compensation.conftest import in_world, step, steps, undo_all
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_last_to_land_is_undone_first(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, message(), ticket(), meeting())
    saga.request_undo(run.pk, by=owner, call_ids=run.calls.values_list("pk", flat=True))
    undo_all(run)
    undone = [effect.undone_at for effect in in_world(world, run)]
    assert None not in undone
    assert undone == sorted(undone, reverse=True)
    landed = [event.call.number for event in run.events.filter(kind="undo.landed")]
    assert landed == [3, 2, 1]


def test_one_step_is_taken_at_a_time(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, message(), ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    assert saga.run_next(run.pk)
    assert [item.state for item in steps(run)] == ["undone", "planned"]


def test_only_what_was_picked_is_undone(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, message(), ticket(), meeting())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 2).pk])
    undo_all(run)
    assert [effect.undone_at is not None for effect in in_world(world, run)] == [False, True, False]
    assert [c.undo_state for c in run.calls.order_by("number")] == ["", "undone", ""]


def test_a_later_request_for_a_later_call_goes_before_what_is_planned(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, message(), ticket(), meeting())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 1).pk, call(run, 2).pk])
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 3).pk])
    undo_all(run)
    landed = [event.call.number for event in run.events.filter(kind="undo.landed")]
    assert landed == [3, 2, 1]


def test_the_receipt_and_its_note_are_kept(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, message())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    undo_all(run)
    assert step(run).receipt["channel"] == "#team"
    assert step(run).note == "The message in #team was deleted. People may have read it."
    assert step(run).ended_at is not None
    assert call(run).undone_at is not None
    assert len(events(run, "call.undone")) == 1
