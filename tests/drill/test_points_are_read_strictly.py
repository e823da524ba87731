import re

import pytest

from agentruns.drill.errors import DrillError
from agentruns.drill.points import PATTERNS, point


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_is_a_point_once_it_has_a_number(pattern: str) -> None:
    text = re.sub(r"\b[TNK]\b", "12", pattern)
    assert point(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "token",
        "token:N",
        "token:0",
        "token:-1",
        "token:1:2",
        "token:1:gate",
        "call:1",
        "call:N:gate",
        "call:01:gate",
        "call:1:committed",
        "call:1:gate:",
        "call:9999999:gate",
        " never",
        "Never",
        "stop:ended",
        "sweep:nothing",
        "call:1:item",
        "call:1:item:0",
        "../../etc",
    ],
)
def test_anything_else_is_refused_with_the_patterns(text: str) -> None:
    with pytest.raises(DrillError, match=r"There is no point “.*”\. Points: never, before-start"):
        point(text)
