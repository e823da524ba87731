"""Case F4: noticed, not done, said."""

import httpx2
import pytest
from django.contrib.auth.models import User

from compensation import saga
from tests.acting import call, message, stopped, ticket
from tests.compensation.conftest import in_world, step, undo_all
from tests.forging import rewrite
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)


def edit(world: RunningWorld, ts: str, text: str = "Wednesday!") -> None:
    body = {"channel": "#team", "ts": ts, "text": text}
    assert httpx2.post(f"{world.http}/chat/chat.update", json=body).json()["ok"]


def test_a_message_that_somebody_edited_stays_and_the_rest_is_undone(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, ticket(), message())
    edit(world, call(run, 2).receipt["ts"])
    saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    undo_all(run)
    left = step(run, 2)
    assert (left.state, left.reason) == ("changed", "changed")
    assert "Wednesday!" in left.detail
    assert call(run, 2).undo_state == ""
    assert step(run, 1).state == "undone"
    assert [effect.undone_at is None for effect in in_world(world, run)] == [False, True]


def test_it_can_be_asked_for_again(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, message())
    edit(world, call(run).receipt["ts"])
    first = saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    undo_all(run)
    assert saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk]) != first


def test_tried_again_after_somebody_put_it_right_it_is_undone(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, message())
    edit(world, call(run).receipt["ts"])
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    undo_all(run)
    edit(world, call(run).receipt["ts"], call(run).receipt["text"])
    saga.try_again(step(run).pk, by=owner)
    undo_all(run)
    assert step(run).state == "undone"


@pytest.mark.breaks_ledger
def test_a_call_that_a_person_said_happened_has_no_receipt_to_undo_by(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, message())
    rewrite(type(call(run)).objects.filter(pk=call(run).pk), receipt={"answered_by": "user:owner"})
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    undo_all(run)
    assert (step(run).state, step(run).reason) == ("cannot", "impossible")
    assert step(run).detail == "The receipt does not say which message it was."
