from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentruns.services.stack import Stack
from tests.drill.drills import AT_ONCE, Drills


@pytest.fixture(scope="module")
def drills(stack: Stack, request: pytest.FixtureRequest) -> Iterator[Drills]:
    """The outcome of each of the module's `DRILLS`, by its arguments."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield Drills(pool, stack, request.module.DRILLS)
        pool.shutdown(cancel_futures=True)
