"""A model provider for each test."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.tools.world.serving import RunningProvider, StartProvider, serving
from tools.world.scenarios import Scenario


@pytest.fixture
def start_provider(tmp_path: Path) -> Iterator[StartProvider]:
    """Start the provider with these scenarios (default: those that ship), without pauses."""
    with ExitStack() as stack:

        def start(
            scenarios: Mapping[str, Scenario] | None = None, *, pace: float = 0.0
        ) -> RunningProvider:
            return RunningProvider(
                stack.enter_context(serving(tmp_path, scenarios, pace)), tmp_path
            )

        yield start
