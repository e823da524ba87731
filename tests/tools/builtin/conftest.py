"""What the tests of several tools stand on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.builtin.shop import Shop, opened


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """The demo's database, with tools that work on it."""
    with opened(tmp_path) as shop:
        yield shop
