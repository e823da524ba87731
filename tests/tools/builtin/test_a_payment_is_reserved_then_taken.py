import dataclasses
from typing import Any

import httpx2
import pytest
from django.utils import translation

from tests.tools.builtin.calls import act, arguments, lookup, prepare, tool, undo
from tests.tools.conftest import NewContext, RunningWorld
from tools.contract import Context, Draft, NotLanded, UndoReceipt
from tools.errors import BadArguments, NoEffect

NAME = "payments.authorize_capture"


def reservations(world: RunningWorld, ctx: Context) -> list[str]:
    """What became of each reservation of this call."""
    answer = httpx2.get(f"{world.http}/payments/authorizations").json()
    return [
        held["status"]
        for held in answer["authorizations"]
        if held["metadata"]["request_id"] == ctx.request_id
    ]


def impl() -> Any:
    return tool(NAME).impl


def test_what_is_reserved_moves_no_money_and_is_let_go_by_its_request_id_alone(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    prepare(NAME, ctx, arguments(NAME))
    assert reservations(world, ctx) == ["authorized"]
    assert lookup(NAME, ctx) == NotLanded()
    assert ctx.request_id in list(impl().drafts())

    for _ in range(2):
        impl().void(ctx, Draft())

    assert reservations(world, ctx) == ["voided"]
    assert lookup(NAME, ctx) == NotLanded()
    assert ctx.request_id not in list(impl().drafts())
    assert world.effects(ctx) == []


def test_a_payment_that_is_taken_is_no_reservation_any_more(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    act(NAME, ctx)
    assert ctx.request_id not in list(impl().drafts())
    impl().void(ctx, Draft())
    assert reservations(world, ctx) == ["captured"]


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_reservation_that_is_gone_is_made_anew(
    is_kept: bool, world: RunningWorld, new_context: NewContext
) -> None:
    ctx, args = new_context(), arguments(NAME)
    draft = prepare(NAME, ctx, args)
    impl().void(ctx, Draft())

    receipt = impl().commit(ctx, args, draft if is_kept else None)

    assert reservations(world, ctx) == ["voided", "captured"]
    assert lookup(NAME, ctx) == receipt
    assert len(world.effects(ctx)) == 1


def test_only_the_capture_counts_as_sending(world: RunningWorld, new_context: NewContext) -> None:
    sent: list[list[str]] = []
    plain = new_context()
    ctx = dataclasses.replace(plain, sending=lambda: sent.append(reservations(world, plain)))
    prepare(NAME, ctx, arguments(NAME))
    assert sent == []


def test_a_lost_answer_to_the_reservation_leaves_one_reservation(
    world: RunningWorld, new_context: NewContext
) -> None:
    world.fault("authorizations", "drop_after")
    ctx, args = new_context(), arguments(NAME)
    with pytest.raises(NoEffect) as caught:
        prepare(NAME, ctx, args)
    assert caught.value.is_passing
    act(NAME, ctx)
    assert reservations(world, ctx) == ["captured"]


@pytest.mark.parametrize(
    "changes", [{"customer": "Hollow Trading Ltd"}, {"amount": 1_000_001}], ids=["bank", "limit"]
)
def test_a_declined_payment_has_no_effect_and_says_why(
    changes: dict[str, Any], world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    with pytest.raises(NoEffect, match=r"declined: the (bank|amount) ") as caught:
        act(NAME, ctx, **changes)
    assert (caught.value.code, caught.value.is_passing) == ("declined", False)
    assert reservations(world, ctx) == []


def test_a_refused_capture_lets_the_reservation_go(
    world: RunningWorld, new_context: NewContext
) -> None:
    world.fault("payments", "refuse")
    ctx = new_context()
    with pytest.raises(NoEffect):
        act(NAME, ctx)
    assert reservations(world, ctx) == ["voided"]


def test_an_undo_whose_answer_was_lost_is_found_by_the_next(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(NAME, ctx)
    world.fault("payments", "drop_after")
    with pytest.raises(httpx2.HTTPError):
        undo(NAME, ctx, receipt)
    result = undo(NAME, ctx, receipt)
    assert isinstance(result, UndoReceipt)
    assert result.note.startswith("1,240.00\u00a0EUR went back to Acme Ltd.")
    (effect,) = world.effects(ctx)
    assert effect.removals == 1


def test_what_somebody_paid_back_already_is_not_paid_back_again(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(NAME, ctx)
    url = f"{world.http}/payments/captures/{receipt.data['capture']}/refund"
    httpx2.post(url, json={}).raise_for_status()
    result = undo(NAME, ctx, receipt)
    assert isinstance(result, UndoReceipt)
    assert "already" in result.note
    answer = httpx2.post(url, json={"amount": 1})
    assert (answer.status_code, answer.json()["refunded"]) == (409, 124_000)


@pytest.mark.parametrize(
    ("currency", "amount", "words"),
    [
        ("EUR", 5, "0.05\u00a0EUR"),
        ("JPY", 124_000, "124,000\u00a0JPY"),
        ("KWD", 124_000, "124.000\u00a0KWD"),
    ],
)
def test_an_amount_is_described_in_its_currency(currency: str, amount: int, words: str) -> None:
    said = tool(NAME).describe(arguments(NAME, currency=currency, amount=amount))
    assert words in said
    with translation.override("zh-hans"):
        said = tool(NAME).describe(arguments(NAME, currency=currency, amount=amount))
    assert words.replace(",", "") in said


@pytest.mark.parametrize(
    "changes", [{"currency": "XXX"}, {"amount": 0}, {"amount": 12.5}, {"amount": "124000"}]
)
def test_what_cannot_be_charged_is_not_taken(changes: dict[str, Any]) -> None:
    with pytest.raises(BadArguments):
        arguments(NAME, **changes)
