"""A call with many items, in the world and on record: how far it went, and its undo."""

import pytest
from django.contrib.auth.models import User

from agentruns.models import Run
from compensation import saga
from tests.acting import Wanted, call, stopped
from tests.compensation.conftest import step, undo_all
from tests.tools.conftest import RunningWorld
from tools.world.record import Effect, effects

pytestmark = pytest.mark.django_db(transaction=True)


def announcement(*channels: str) -> Wanted:
    return "chat.announce", {"channels": channels, "text": "We move on Friday."}


def in_world(world: RunningWorld, run: Run) -> list[Effect]:
    key = call(run).request_id
    return [effect for effect in effects(world.folder) if effect.call_key == key]


def undone(world: RunningWorld, run: Run) -> dict[str, bool]:
    return {each.data["channel"]: each.undone_at is not None for each in in_world(world, run)}


def test_a_channel_that_refuses_ends_it_with_what_is_done(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, announcement("#team", "#finance", "#nowhere"))

    said = call(run).response
    assert call(run).state == "landed"
    assert said.startswith("2 of 3 done (The chat refused the message: channel_not_found")
    assert said.endswith("Not done: #nowhere.")
    assert undone(world, run) == {"#team": False, "#finance": False}


def test_a_first_channel_that_refuses_is_a_failure(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, announcement("#nowhere", "#team"))
    assert (call(run).state, call(run).reason) == ("failed", "channel_not_found")
    assert in_world(world, run) == []


def test_each_message_that_is_out_is_deleted(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, announcement("#team", "#finance", "#nowhere"))
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    undo_all(run)

    assert undone(world, run) == {"#team": True, "#finance": True}
    assert step(run).note == (
        "The messages in #finance, #team are deleted. People may have read them."
    )
    assert call(run).undo_state == "undone"
