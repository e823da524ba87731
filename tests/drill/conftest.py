from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentruns.services.stack import Stack
from tests.drill.drills import AT_ONCE, Drills
from tests.drill.over_http import Program


@pytest.fixture(scope="module")
def drills(stack: Stack, request: pytest.FixtureRequest) -> Iterator[Drills]:
    """The outcome of each of the module's `DRILLS`, by its arguments."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield Drills(pool, stack, request.module.DRILLS)
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def program(stack: Stack, stack_db: None) -> Iterator[Program]:
    """Uses the stack's API for ana; the world does as it should again afterwards."""
    using = Program(stack)
    yield using
    using.close()
