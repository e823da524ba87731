from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentruns.services.stack import Stack
from tests.drill.drills import AT_ONCE, Drills, loaded
from tests.drill.over_http import Program


@pytest.fixture(scope="session")
def loaded_drill(stack: Stack, scratch: Path) -> Iterator[Path]:
    """The socket at which drills are to be had."""
    with loaded(stack, scratch / "drill.sock") as path:
        yield path


@pytest.fixture(scope="module")
def drills(loaded_drill: Path, request: pytest.FixtureRequest) -> Iterator[Drills]:
    """The outcome of each of the module's `DRILLS`, by its arguments."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield Drills(pool, loaded_drill, request.module.DRILLS)
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def program(stack: Stack, stack_db: None) -> Iterator[Program]:
    """Uses the stack's API for ana; the world does as it should again afterwards."""
    using = Program(stack)
    yield using
    using.close()
