"""Texts of models and of outside systems: kept, whatever characters they are made of."""

import json
from typing import Any

import pytest

from tools import registry
from tools.errors import BadArguments
from tools.storable import is_storable, storable

KEPT: list[Any] = ["", "Ünïcode 😀 \u202e \x01", 7, 1.5, None, True, {"a": ["b", {"c": "d"}]}]
NOT_KEPT: list[tuple[Any, Any]] = [
    ("a\x00b", "a\ufffdb"),
    ("half \ud800 a pair", "half \ufffd a pair"),
    ({"k\x00": ["\udfff", {"deep": "\x00"}]}, {"k\ufffd": ["\ufffd", {"deep": "\ufffd"}]}),
    ([float("nan"), float("-inf")], ["nan", "-inf"]),
]


@pytest.mark.parametrize("value", KEPT)
def test_what_can_be_kept_stays_as_it_is(value: Any) -> None:
    assert is_storable(value)
    assert storable(value) == value


@pytest.mark.parametrize(("value", "kept"), NOT_KEPT)
def test_what_cannot_is_marked_where_it_was(value: Any, kept: Any) -> None:
    assert not is_storable(value)
    assert storable(value) == kept
    assert is_storable(storable(value))


def test_arguments_that_cannot_be_kept_do_not_fit() -> None:
    tool = registry.get("chat.post_message")
    assert tool is not None
    text = json.dumps({"channel": "#team", "text": "a\x00b"})
    for raw in (text, json.loads(text)):
        with pytest.raises(BadArguments) as caught:
            tool.parse(raw)
        assert caught.value.reasons == ["text: cannot be kept as it is"]
