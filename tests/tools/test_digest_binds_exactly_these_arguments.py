"""Case D17."""

import json
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from tools.digest import args_digest


class Colour(StrEnum):
    RED = "red"


class Inner(BaseModel):
    ratio: float = 0.5
    secret: SecretStr = SecretStr("")


class Args(BaseModel):
    count: int = 3
    price: Decimal = Decimal("1.50")
    text: str = ""
    colour: Colour = Colour.RED
    inner: Inner = Inner()
    tags: set[str] = set()
    extra: dict[str, Any] = {}
    hidden: str = Field("", exclude=True)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def digest(**changes: Any) -> str:
    return args_digest(Args.model_validate(changes))


def shuffled(value: Any) -> Any:
    """The same value with every object's keys the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def refloated(value: Any) -> Any:
    """The same value with whole numbers written as 1.0 instead of 1, and the reverse."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return float(value)
    if isinstance(value, float) and value.is_integer():
        return int(Decimal(repr(value)))
    if isinstance(value, dict):
        return {key: refloated(item) for key, item in value.items()}
    return [refloated(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_key_order_and_number_form_do_not_matter(extra: dict[str, Any]) -> None:
    assert digest(extra=extra) == digest(extra=shuffled(extra))
    assert digest(extra=extra) == digest(extra=refloated(extra))


def as_json(value: Any) -> str:
    """The value as JSON, each number in one form: equal texts are equal arguments."""

    def normal(item: Any) -> Any:
        if isinstance(item, float) and item.is_integer():
            return int(Decimal(repr(item)))
        if isinstance(item, dict):
            return {key: normal(inner) for key, inner in item.items()}
        return [normal(inner) for inner in item] if isinstance(item, list) else item

    return json.dumps(normal(value), sort_keys=True)


@given(VALUES, VALUES)
def test_digests_agree_exactly_where_the_values_do(one: Any, other: Any) -> None:
    agree = digest(extra={"v": one}) == digest(extra={"v": other})
    assert agree == (as_json(one) == as_json(other))


@pytest.mark.django_db
@pytest.mark.parametrize("value", [1e300, -1e22, 1.2345678901234567e17])
def test_a_large_number_is_the_same_when_it_comes_back_from_the_database(value: float) -> None:
    """D17: what was approved is not taken for something else at the gate."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb", [json.dumps({"v": value})])
        [kept] = cursor.fetchone()
    assert digest(extra=json.loads(kept)) == digest(extra={"v": value})


def test_defaults_spelt_out_or_left_out_are_equal() -> None:
    spelt = {"count": 3, "price": "1.5", "text": "", "colour": "red", "tags": [], "extra": {}}
    assert digest() == digest(**spelt, inner={"ratio": 0.5})
    assert digest(price="1.500") == digest(price=1.5)
    assert digest(tags=["a", "b"]) == digest(tags=["b", "a"])


def test_what_a_dump_would_hide_still_counts() -> None:
    assert digest(inner={"secret": "one"}) != digest(inner={"secret": "two"})
    assert digest(hidden="one") != digest(hidden="two")


def test_close_values_differ() -> None:
    assert digest(text="50") != digest(text="100")
    assert digest(text="a") != digest(text="a ")
    assert digest(extra={"v": 1}) != digest(extra={"v": True})
    assert digest(extra={"v": 1}) != digest(extra={"v": "1"})
    assert digest(extra={"v": 2**53}) != digest(extra={"v": 2**53 + 1})
    assert digest(extra={"v": None}) != digest(extra={})
    assert digest(extra={"v": [[1], 2]}) != digest(extra={"v": [1, [2]]})
