"""sql.execute: what is prepared, landed, found again and undone; on a real PostgreSQL."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.utils import translation
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import lookup, prepare, tool, undo
from tests.tools.builtin.shop import PRICES, Shop
from tests.tools.conftest import NewContext
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Draft,
    NotLanded,
    Receipt,
    UndoReceipt,
    Unknown,
)
from tools.errors import BadArguments, NoEffect

NAME = "sql.execute"
RAISED = {"chair": "82.95", "desk": "252.00", "lamp": "36.75"}


def impl() -> Any:
    return tool(NAME).impl


def call(statement: str, **params: object) -> Any:
    return tool(NAME).parse({"statement": statement, "params": params})


def raising(shop: Shop, percent: float = 5) -> Any:
    return call("price_list.raise", list=shop.list, percent=percent)


def act(ctx: Context, args: Any) -> Receipt:
    receipt: Receipt = impl().commit(ctx, args, prepare(NAME, ctx, args))
    return receipt


def test_what_is_prepared_is_seen_by_nobody_and_dropped_by_its_request_id_alone(
    shop: Shop, new_context: NewContext
) -> None:
    ctx = new_context()
    prepare(NAME, ctx, raising(shop))
    assert shop.prices() == PRICES
    assert shop.effects(ctx.request_id) == []
    assert list(impl().drafts()) == [ctx.request_id]
    assert lookup(NAME, ctx) == NotLanded()

    for _ in range(2):
        impl().void(ctx, Draft())

    assert list(impl().drafts()) == []
    shop.run("SET lock_timeout = '1s'")
    shop.run("UPDATE prices SET price = price WHERE list = %s", shop.list)


def test_a_statement_lands_once_and_is_found(shop: Shop, new_context: NewContext) -> None:
    ctx, args = new_context(), raising(shop)
    receipt = act(ctx, args)
    assert shop.prices() == RAISED
    assert lookup(NAME, ctx) == receipt
    assert list(impl().drafts()) == []
    for draft in (None, Draft(), prepare(NAME, ctx, args)):
        assert impl().commit(ctx, args, draft) == receipt
    assert shop.prices() == RAISED
    (effect,) = shop.effects(ctx.request_id)
    assert (effect.tool, effect.undone_at, effect.removals) == (NAME, None, 0)


def test_the_record_has_the_moment_of_landing_and_not_of_preparing(
    shop: Shop, new_context: NewContext
) -> None:
    ctx, args = new_context(), raising(shop)
    draft = prepare(NAME, ctx, args)
    between = datetime.now(UTC)
    receipt = impl().commit(ctx, args, draft)
    (landed,) = shop.effects(ctx.request_id)
    assert landed.at > between
    undo(NAME, ctx, receipt)
    (undone,) = shop.effects(ctx.request_id)
    assert undone.at == landed.at
    assert undone.undone_at is not None
    assert undone.undone_at > landed.at


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_was_dropped_is_prepared_anew(
    is_kept: bool, shop: Shop, new_context: NewContext
) -> None:
    ctx, args = new_context(), raising(shop)
    draft = prepare(NAME, ctx, args)
    impl().void(ctx, Draft())
    impl().commit(ctx, args, draft if is_kept else None)
    assert shop.prices() == RAISED


def test_preparing_twice_leaves_one(shop: Shop, new_context: NewContext) -> None:
    ctx, args = new_context(), raising(shop)
    prepare(NAME, ctx, args)
    prepare(NAME, ctx, args)
    assert list(impl().drafts()) == [ctx.request_id]


def test_only_the_last_word_counts_as_sending(shop: Shop, new_context: NewContext) -> None:
    sent: list[list[str]] = []
    ctx = dataclasses.replace(new_context(), sending=lambda: sent.append(list(impl().drafts())))
    args = raising(shop)
    draft = prepare(NAME, ctx, args)
    assert sent == []
    impl().commit(ctx, args, draft)
    assert sent == [[ctx.request_id]]


def test_undo_makes_it_as_it_was_and_twice_is_once(shop: Shop, new_context: NewContext) -> None:
    ctx = new_context()
    receipt = act(ctx, raising(shop, 2.5))
    first = undo(NAME, ctx, receipt)
    assert isinstance(first, UndoReceipt)
    assert f"Raise all prices in “{shop.list}” by 2.5 %. 3 rows are as they were" in first.note
    assert shop.prices() == PRICES
    shop.run("UPDATE prices SET price = 99 WHERE list = %s AND item = 'chair'", shop.list)
    assert undo(NAME, ctx, receipt) == first
    assert shop.prices() == PRICES | {"chair": "99.00"}
    assert shop.effects(ctx.request_id)[0].removals == 1


def test_undo_leaves_alone_what_somebody_changed_since(shop: Shop, new_context: NewContext) -> None:
    ctx = new_context()
    receipt = act(ctx, raising(shop))
    shop.run("UPDATE prices SET price = 99 WHERE list = %s AND item = 'chair'", shop.list)
    result = undo(NAME, ctx, receipt)
    assert isinstance(result, Changed)
    assert "2 of 3 rows" in result.what
    assert shop.prices() == RAISED | {"chair": "99.00"}
    assert shop.effects(ctx.request_id)[0].undone_at is None


def test_undo_sees_what_its_statement_says_would_be_a_change(
    shop: Shop, new_context: NewContext
) -> None:
    ctx, name = new_context(), f"{shop.list}-new"
    receipt = act(ctx, call("price_list.create", list=name))
    shop.run("INSERT INTO prices VALUES (%s, 'sofa', 700)", name)
    assert isinstance(undo(NAME, ctx, receipt), Changed)
    shop.run("DELETE FROM prices WHERE list = %s", name)
    assert isinstance(undo(NAME, ctx, receipt), UndoReceipt)
    assert not shop.has_list(name)


def test_undo_against_a_rule_of_the_database_is_a_change(
    shop: Shop, new_context: NewContext
) -> None:
    ctx, number = new_context(), int(shop.list[-4:], 16) + 100
    add = "INSERT INTO customers VALUES (%s, %s, 'DE')"
    shop.run(add, number, "Alt GmbH")
    receipt = act(ctx, call("customers.remove", id=number))
    shop.run(add, number, "Neu GmbH")
    result = undo(NAME, ctx, receipt)
    assert isinstance(result, Changed)
    assert "duplicate key" in result.what
    shop.run("DELETE FROM customers WHERE id = %s", number)
    assert isinstance(undo(NAME, ctx, receipt), UndoReceipt)


def test_undo_is_the_one_that_was_registered_when_it_landed(
    shop: Shop, new_context: NewContext, settings: Settings
) -> None:
    ctx = new_context()
    receipt = act(ctx, raising(shop))
    settings.SQL_STATEMENTS = ""
    result = undo(NAME, ctx, receipt)
    assert isinstance(result, UndoReceipt)
    assert "price_list.raise" in result.note
    assert shop.prices() == PRICES


def test_a_column_comes_and_goes(shop: Shop, new_context: NewContext) -> None:
    ctx = new_context()
    receipt = act(ctx, call("customers.add_segment"))
    shop.run("UPDATE customers SET segment = 'retail' WHERE id = 1")
    assert isinstance(undo(NAME, ctx, receipt), Changed)
    shop.run("UPDATE customers SET segment = NULL")
    assert isinstance(undo(NAME, ctx, receipt), UndoReceipt)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        shop.run("SELECT segment FROM customers")


def test_undo_without_a_usable_receipt_or_row_says_so(shop: Shop, new_context: NewContext) -> None:
    ctx = new_context()
    assert isinstance(undo(NAME, ctx, Receipt()), CannotUndo)
    assert isinstance(undo(NAME, ctx, Receipt({"statement": "price_list.raise"})), CannotUndo)


def test_a_rule_that_is_broken_is_told_in_the_words_of_the_database(
    shop: Shop, new_context: NewContext
) -> None:
    ctx = new_context()
    with pytest.raises(NoEffect, match="violates unique constraint") as caught:
        act(ctx, call("price_list.create", list=shop.list))
    assert (caught.value.code, caught.value.is_passing) == ("refused", False)
    assert shop.list not in str(caught.value), "what is in the rows is nobody's business"
    assert lookup(NAME, ctx) == NotLanded()
    assert list(impl().drafts()) == []


def test_another_number_of_rows_than_was_expected_is_refused(
    shop: Shop, new_context: NewContext
) -> None:
    with pytest.raises(NoEffect, match="change 0 rows and not 1"):
        act(new_context(), call("customers.remove", id=999_999))


def test_who_waits_for_somebody_else_too_long_is_asked_again_later(
    shop: Shop, new_context: NewContext
) -> None:
    with shop.database.transaction():
        shop.run("UPDATE prices SET price = price WHERE list = %s", shop.list)
        with pytest.raises(NoEffect) as caught:
            act(new_context(timeout=0.2), raising(shop))
    assert (caught.value.code, caught.value.is_passing) == ("busy", True)


@pytest.mark.parametrize(
    ("url", "is_passing"),
    [("postgresql://127.0.0.1:1/x", True), ("no address", False), ("", False)],
)
def test_a_database_that_cannot_be_reached_decides_nothing(
    url: str, is_passing: bool, shop: Shop, new_context: NewContext, settings: Settings
) -> None:
    args = raising(shop)
    settings.SQL_TOOL_URL = url
    ctx = new_context()
    with pytest.raises(NoEffect) as caught:
        act(ctx, args)
    assert caught.value.is_passing == is_passing
    assert isinstance(lookup(NAME, ctx), Unknown)


@pytest.mark.parametrize(
    ("statement", "params", "problem"),
    [
        ("drop.everything", {}, "no statement"),
        ("price_list.raise", {"list": "2026"}, "percent is missing"),
        ("price_list.raise", {"list": "2026", "percent": 26}, "percent must be from"),
        ("price_list.raise", {"list": "2026", "percent": "5"}, "percent must be of type number"),
        ("price_list.raise", {"list": "2026", "percent": True}, "percent must be of type number"),
        ("customers.remove", {"id": 1.5}, "id must be of type integer"),
        ("customers.remove", {"id": 1, "rows": 2}, "rows is unknown"),
        ("price_list.create", {"list": "x" * 41}, "at most 40 characters"),
    ],
)
def test_what_does_not_fit_the_statement_is_refused(
    statement: str, params: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadArguments, match=problem):
        call(statement, **params)


def test_a_parameter_is_a_value_and_never_sql(shop: Shop, new_context: NewContext) -> None:
    name = "'); DROP TABLE prices; --"
    ctx = new_context()
    receipt = act(ctx, call("price_list.create", list=name))
    assert shop.has_list(name)
    assert isinstance(undo(NAME, ctx, receipt), UndoReceipt)
    assert shop.prices() == PRICES


def test_a_statement_is_described_in_the_language_of_its_reader() -> None:
    args = call("price_list.raise", list="2026", percent=5)
    assert tool(NAME).describe(args) == "Raise all prices in “2026” by 5 %"
    with translation.override("zh-hans"):
        assert tool(NAME).describe(args) == "把“2026”中的所有价格上调 5%"


def test_a_model_is_told_which_statements_there_are() -> None:
    told = tool(NAME).json_schema()["properties"]["statement"]
    assert "price_list.raise" in told["enum"]
    assert '"percent": {"type": "number"' in told["description"]
