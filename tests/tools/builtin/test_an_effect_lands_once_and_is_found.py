import dataclasses

import pytest

from tests.tools.builtin.calls import EFFECTS, WITH_LOOKUP, act, arguments, lookup, prepare, tool
from tests.tools.conftest import NewContext, RunningWorld
from tools.contract import NotLanded, Receipt, Unknown


@pytest.mark.parametrize("name", EFFECTS)
def test_commit_leaves_exactly_one_effect_in_the_world(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(name, ctx)
    (effect,) = world.effects(ctx)
    assert effect.tool == name
    assert effect.undone_at is None
    assert receipt.response


@pytest.mark.parametrize("name", EFFECTS)
def test_what_is_prepared_and_voided_never_reaches_the_world(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    draft = prepare(name, ctx, arguments(name))
    if draft is not None:
        tool(name).impl.void(ctx, draft)  # type: ignore[attr-defined]
    assert world.effects(ctx) == []


@pytest.mark.parametrize("name", EFFECTS)
def test_a_draft_can_be_committed_by_another_process(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    """A ledger keeps the draft: only its data, as JSON, may be needed."""
    ctx, args = new_context(), arguments(name)
    draft = prepare(name, ctx, args)
    kept = None if draft is None else dataclasses.replace(draft, data=dict(draft.data))
    tool(name).impl.commit(dataclasses.replace(ctx), args, kept)
    assert len(world.effects(ctx)) == 1


@pytest.mark.parametrize("name", WITH_LOOKUP)
def test_lookup_tells_landed_from_not_landed(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    assert lookup(name, ctx) == NotLanded()
    receipt = act(name, ctx)
    found = lookup(name, ctx)
    assert isinstance(found, Receipt)
    assert found.data == receipt.data
    assert len(world.effects(ctx)) == 1, "a look-up never sends"


@pytest.mark.parametrize("name", WITH_LOOKUP)
def test_lookup_of_an_unreachable_system_decides_nothing(
    name: str, world: RunningWorld, new_context: NewContext, settings: object
) -> None:
    for setting in (
        "CALDAV_URL",
        "CHAT_URL",
        "TICKETS_URL",
        "GIT_API_URL",
        "HOOKS_URL",
        "PAYMENTS_URL",
    ):
        setattr(settings, setting, "http://127.0.0.1:1/")
    assert isinstance(lookup(name, new_context()), Unknown)


@pytest.mark.parametrize(
    "name",
    [
        "calendar.cancel_event",
        "calendar.create_event",
        "calendar.move_event",
        "git.open_draft",
        "http.hooks",
        "http.request",
        "payments.authorize_capture",
        "tickets.create",
    ],
)
def test_a_second_commit_with_the_same_key_finds_the_first_effect(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    """Case C7: these systems take a key, so even a second send has no second effect."""
    ctx = new_context()
    args = arguments(name)
    first = tool(name).impl.commit(ctx, args, prepare(name, ctx, args))
    second = tool(name).impl.commit(ctx, args, prepare(name, ctx, args))
    assert first.data == second.data
    assert len(world.effects(ctx)) == 1


@pytest.mark.parametrize("name", ["chat.post_message", "email.send"])
def test_the_world_shows_a_message_that_was_sent_twice_as_two_effects(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    act(name, ctx)
    act(name, ctx)
    assert len(world.effects(ctx)) == 2
