"""chat.announce: an item for each channel, as protocol §9 wants it of a call with many effects."""

import dataclasses

import httpx2
import pytest

from tests.tools.builtin.calls import act, arguments, lookup, tool, undo
from tests.tools.conftest import NewContext, RunningWorld
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    ItemsInMemory,
    NotLanded,
    PauseSignal,
    Receipt,
    UndoReceipt,
)
from tools.errors import BadArguments, NoEffect

CHANNELS = ["#general", "#team", "#finance"]


class Interrupted(ItemsInMemory):
    """Says after each item that no further one may follow."""

    def land(self, key: str, receipt: dict[str, object]) -> None:
        super().land(key, receipt)
        raise PauseSignal("the run is held")


def announce(ctx: Context, channels: list[str] = CHANNELS) -> Receipt:
    return act("chat.announce", ctx, channels=channels)


def there(world: RunningWorld, ctx: Context) -> list[tuple[str, str]]:
    """The channels that have it, each with the number of the item."""
    found = [(each.data["channel"], each.request_id) for each in world.effects(ctx)]
    return [(channel, key.removeprefix(f"{ctx.request_id}/")) for channel, key in found]


def undone(world: RunningWorld, ctx: Context) -> dict[str, bool]:
    """By channel, whether the message there is gone again."""
    return {each.data["channel"]: each.undone_at is not None for each in world.effects(ctx)}


def anew(ctx: Context) -> Context:
    """The same call, by somebody who has no items on record."""
    return dataclasses.replace(ctx, items=ItemsInMemory())


def test_each_channel_gets_it_in_order_under_a_key_and_with_a_receipt_of_its_own(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = announce(ctx)

    assert there(world, ctx) == [("#general", "1"), ("#team", "2"), ("#finance", "3")]
    assert {each.tool for each in world.effects(ctx)} == {"chat.announce"}
    assert receipt.data == {"items": ctx.items.done()}
    assert list(ctx.items.done()) == CHANNELS
    assert len({kept["ts"] for kept in ctx.items.done().values()}) == 3
    assert receipt.response == "The message was posted to #general, #team, #finance."


def test_its_items_are_its_channels() -> None:
    args = arguments("chat.announce", channels=CHANNELS)
    assert tool("chat.announce").item_keys(args) == CHANNELS


def test_many_channels_are_counted() -> None:
    args = arguments("chat.announce", channels=[*CHANNELS, "#releases", "#other"])
    said = tool("chat.announce").describe(args)
    assert said == "Message to #general, #team, #finance and 2 more: “The review is on Tuesday.”"


@pytest.mark.parametrize(
    ("channels", "reason"),
    [
        ([], "at least 1 item"),
        ([f"#c{n}" for n in range(21)], "at most 20 items"),
        (["team"], "should match pattern"),
        (["#team", "#general", "#team"], "each once: #team is there twice"),
    ],
)
def test_channels_that_do_not_fit_are_refused(channels: list[str], reason: str) -> None:
    with pytest.raises(BadArguments, match=reason):
        arguments("chat.announce", channels=channels)


def test_interrupted_it_goes_on_where_it_was(world: RunningWorld, new_context: NewContext) -> None:
    ctx = dataclasses.replace(new_context(), items=Interrupted())
    with pytest.raises(PauseSignal):
        announce(ctx)
    assert there(world, ctx) == [("#general", "1")]

    announce(dataclasses.replace(ctx, items=ItemsInMemory(ctx.items.done())))

    assert there(world, ctx) == [("#general", "1"), ("#team", "2"), ("#finance", "3")]


def test_a_channel_that_is_not_there_had_no_effect_and_those_before_had(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    with pytest.raises(NoEffect, match="channel_not_found"):
        announce(ctx, ["#general", "#nowhere", "#team"])
    assert list(ctx.items.done()) == ["#general"]
    assert there(world, ctx) == [("#general", "1")]


def test_lookup_says_which_messages_are_there(world: RunningWorld, new_context: NewContext) -> None:
    ctx = new_context()
    assert lookup("chat.announce", ctx) == NotLanded()
    receipt = announce(ctx)
    assert lookup("chat.announce", anew(ctx)) == Receipt(receipt.data)


def test_lookup_adds_the_one_whose_answer_was_lost_to_those_on_record(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = dataclasses.replace(new_context(), items=Interrupted())
    with pytest.raises(PauseSignal):
        announce(ctx)
    ctx = dataclasses.replace(ctx, items=ItemsInMemory(ctx.items.done()))
    world.fault("chat", "drop_after")
    with pytest.raises(httpx2.HTTPError):
        announce(ctx)
    assert list(ctx.items.done()) == ["#general"]

    found = lookup("chat.announce", ctx)

    assert list(found.data["items"]) == ["#general", "#team"]
    assert there(world, ctx) == [("#general", "1"), ("#team", "2")], "a look-up never sends"


def test_undo_deletes_all_that_are_there_also_when_it_was_cut_off_before(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = announce(ctx)
    world.fault("chat", "drop_after")
    with pytest.raises(httpx2.HTTPError):
        undo("chat.announce", ctx, receipt)

    assert isinstance(undo("chat.announce", ctx, receipt), UndoReceipt)

    found = world.effects(ctx)
    assert all(each.undone_at for each in found)
    assert [each.removals for each in found] == [1, 1, 1]


def test_undo_of_a_part_deletes_that_part(world: RunningWorld, new_context: NewContext) -> None:
    """The ledger gives the receipts back in no order: the numbers are in them."""
    ctx = new_context()
    items = announce(ctx).data["items"]
    part = {name: items[name] for name in ("#finance", "#general")}

    assert isinstance(undo("chat.announce", ctx, Receipt({"items": part})), UndoReceipt)

    assert undone(world, ctx) == {"#general": True, "#team": False, "#finance": True}


def test_undo_leaves_a_message_that_was_changed_and_says_which(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = announce(ctx)
    kept = receipt.data["items"]["#team"]
    body = {"channel": "#team", "ts": kept["ts"], "text": "Wednesday!"}
    httpx2.post(f"{world.http}/chat/chat.update", json=body).raise_for_status()

    result = undo("chat.announce", ctx, receipt)

    assert result == Changed(
        "#team: The message was changed since: it now says “Wednesday!”. "
        "Deleted: #general, #finance."
    )
    assert undone(world, ctx) == {"#general": True, "#team": False, "#finance": True}


def test_undo_of_an_item_without_a_usable_receipt_says_so(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = announce(ctx, ["#general"])
    items = receipt.data["items"] | {"#team": {}}

    result = undo("chat.announce", ctx, Receipt({"items": items}))

    assert result == CannotUndo(
        "#team: The receipt does not say which message it was. Deleted: #general."
    )
