"""A data folder as awkward as people make them, and a wait with a deadline."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

DEADLINE = 20.0  # seconds


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """An empty data folder with a space in its path."""
    folder = tmp_path / "my data"
    folder.mkdir()
    # Servers that root starts as another account must be able to get here.
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o711)
    return folder


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait until something holds; fail if it does not within the deadline."""

    def wait(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < deadline, "it did not come to hold"
            time.sleep(0.01)

    return wait
