"""By policy of agent and tool, at most once per Stop, in the name of who pressed it."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from agentruns.models import Agent, Run, StopRequest, ToolCall
from agentruns.protocol.execute import look_up_call
from agentruns.protocol.resume import resume_run
from agentruns.protocol.stop import request_stop
from compensation import saga
from compensation.models import Compensation, UndoRequest
from tests.acting import Wanted, acted, call, events, fresh, meeting, ticket
from tests.compensation.conftest import WorkerDied, in_world, step, steps, undo_all
from tests.tools.conftest import RunningWorld
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)

MEETING = "calendar.create_event"


def acting(owner: User, *wanted: Wanted, by_itself: bool = True) -> Run:
    """A run that has done these, of an agent whose reversible steps are undone by themselves."""
    run = acted(owner, *wanted)
    Agent.objects.update(auto_undo="reversible" if by_itself else "offer")
    return fresh(run)


def stop(run: Run, by: User | None, **more: str) -> StopRequest:
    """Stop it, and do what the workers do then."""
    request = request_stop(run.pk, by=by, **more)
    saga.undo_after_stop(run.pk)
    undo_all(run)
    return request


def undone(run: Run) -> list[int]:
    found = run.calls.filter(undo_state="undone").order_by("-undone_at")
    return list(found.values_list("number", flat=True))


def test_what_is_reversible_is_undone_and_the_rest_is_left_to_a_person(
    owner: User, world: RunningWorld
) -> None:
    run = acting(owner, meeting("One"), ticket(), meeting("Two"))
    stop(run, owner)
    assert undone(run) == [1, 3]
    assert [item.undone_at is None for item in in_world(world, run)] == [False, True, False]
    request = UndoRequest.objects.get(run=run)
    assert (request.requested_by, request.stop_epoch) == (owner, fresh(run).epoch)
    assert [item.call.number for item in steps(run)] == [3, 1], "the last to land goes first"


@pytest.mark.parametrize(
    ("by_itself", "tool", "expected"),
    [
        (False, "agent", []),
        (True, "agent", [1]),
        (True, "never", []),
        (False, "always", [1]),
    ],
)
def test_agent_and_tool_decide(
    owner: User, world: RunningWorld, by_itself: bool, tool: str, expected: list[int]
) -> None:
    run = acting(owner, meeting(), by_itself=by_itself)
    Tool.objects.filter(name=MEETING).update(auto_undo=tool)
    stop(run, owner)
    assert undone(run) == expected


def test_what_was_tightened_before_it_landed_is_not_undone_by_itself(
    owner: User, world: RunningWorld
) -> None:
    Tool.objects.filter(name=MEETING).update(tier="compensable")
    run = acting(owner, meeting())
    assert call(run).tier == "compensable"
    stop(run, owner)
    assert undone(run) == []


def test_a_lost_doorbell_is_made_good_by_the_sweeper(owner: User, world: RunningWorld) -> None:
    run = acting(owner, meeting())
    request_stop(run.pk, by=owner)
    assert saga.sweep() == 1
    assert saga.undo_after_stop(run.pk) is not None
    undo_all(run)
    assert undone(run) == [1]
    assert saga.sweep() == 0


@pytest.mark.parametrize("point", ["undo:begin", "undo:planned"])
def test_a_worker_that_dies_on_it_leaves_one_undo(
    owner: User, world: RunningWorld, die_at: Callable[[str], None], point: str
) -> None:
    run = acting(owner, meeting())
    request_stop(run.pk, by=owner)
    die_at(point)
    with pytest.raises(WorkerDied):
        saga.undo_after_stop(run.pk)
    saga.sweep()
    saga.undo_after_stop(run.pk)
    undo_all(run)
    assert undone(run) == [1]
    assert UndoRequest.objects.filter(run=run).count() == 1


def test_it_happens_at_most_once_per_stop(owner: User, world: RunningWorld) -> None:
    run = acting(owner, meeting())
    stop(run, owner)
    assert saga.undo_after_stop(run.pk) is None
    with pytest.raises(IntegrityError, match="one_undo_by_itself_per_stop"), transaction.atomic():
        UndoRequest.objects.create(
            run=run, requested_by=owner, created_at=run.created_at, stop_epoch=fresh(run).epoch
        )


def test_what_a_person_has_begun_with_is_theirs(
    owner: User, admin: User, world: RunningWorld
) -> None:
    run = acting(owner, meeting("One"), meeting("Two"))
    request_stop(run.pk, by=owner)
    saga.request_undo(run.pk, by=admin, call_ids=[call(run, 1).pk])
    saga.undo_after_stop(run.pk)
    undo_all(run)
    askers = {item.call.number: item.request.requested_by for item in steps(run)}
    assert askers == {1: admin, 2: owner}


def test_an_undo_that_is_stopped_before_it_begins_never_begins(
    owner: User, world: RunningWorld
) -> None:
    run = acting(owner, meeting())
    request_stop(run.pk, by=owner)
    saga.stop_undo(run.pk, by=owner)
    assert saga.undo_after_stop(run.pk) is None
    assert saga.sweep() == 0
    assert not Compensation.objects.exists()
    assert len(events(run, "undo.stopped")) == 1


@pytest.mark.parametrize(
    ("signal", "pending", "expected"),
    [
        ("budget", "discard", [1]),
        ("user", "freeze", []),
        ("handoff", "discard", []),
    ],
)
def test_where_somebody_goes_on_from_the_stop_nothing_is_undone(
    owner: User, world: RunningWorld, signal: str, pending: str, expected: list[int]
) -> None:
    """And a stop without a person has the authority of the owner."""
    run = acting(owner, meeting())
    stop(run, None, signal=signal, pending=pending)
    assert undone(run) == expected


def test_a_stop_without_a_person_undoes_nothing_if_the_owner_may_no_longer(
    owner: User, world: RunningWorld
) -> None:
    run = acting(owner, meeting())
    User.objects.filter(pk=owner.pk).update(is_active=False)
    stop(run, None, signal="budget", pending="discard")
    assert undone(run) == []
    (withheld,) = events(run, "undo.withheld")
    assert withheld["reason"] == "not_allowed"


def test_a_run_that_somebody_lets_go_on_first_keeps_what_it_did(
    owner: User, world: RunningWorld
) -> None:
    run = acting(owner, meeting())
    request_stop(run.pk, by=owner)
    resume_run(run.pk, by=owner)
    assert saga.undo_after_stop(run.pk) is None
    assert saga.sweep() == 0
    assert undone(run) == []


def test_what_is_in_doubt_is_found_out_first(owner: User, world: RunningWorld) -> None:
    world.fault("caldav", "drop_after")
    run = acting(owner, meeting("One"))
    assert call(run).state == "in_doubt"
    request_stop(run.pk, by=owner)
    assert saga.undo_after_stop(run.pk) is None
    ToolCall.objects.filter(run=run).update(next_lookup_at=run.created_at)
    look_up_call(call(run).pk)
    assert call(run).state == "landed"
    saga.undo_after_stop(run.pk)
    undo_all(run)
    assert undone(run) == [1]
    assert step(run).state == "undone"


def test_nothing_follows_where_nobody_stopped(owner: User, world: RunningWorld) -> None:
    run = acting(owner, meeting())
    assert saga.undo_after_stop(run.pk) is None
    assert saga.sweep() == 0
