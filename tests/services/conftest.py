"""A data folder as awkward as people make them, and a wait with a deadline."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

DEADLINE = 20.0  # seconds


@pytest.fixture
def data_dir(scratch: Path) -> Path:
    """An empty data folder with a space in its path, where also Postgres's own account may go."""
    return Path(tempfile.mkdtemp(prefix="my data ", dir=scratch))


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait until something holds; fail if it does not within the deadline."""

    def wait(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < deadline, "it did not come to hold"
            time.sleep(0.01)

    return wait
