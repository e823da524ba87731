"""One event loop per process does what threads want done; a fork begins its own."""

import asyncio
import os
import threading

import pytest

from agentruns import background
from tests.pausing import at_once


async def where() -> tuple[int, int]:
    return os.getpid(), id(asyncio.get_running_loop())


async def fails() -> None:
    raise ValueError("as it was raised")


def test_every_thread_uses_the_same_loop() -> None:
    found = at_once([lambda: background.run(where(), limit=5) for _ in range(8)])
    assert len(set(found)) == 1
    assert background.run(where(), limit=5) == found[0]


def test_what_goes_wrong_is_told_to_who_asked() -> None:
    with pytest.raises(ValueError, match="as it was raised"):
        background.run(fails(), limit=5)


def test_nobody_waits_longer_than_the_limit() -> None:
    with pytest.raises(TimeoutError):
        background.run(asyncio.Event().wait(), limit=0.01)
    assert background.run(where(), limit=5), "and the loop goes on"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_a_loop_of_its_own() -> None:
    background.run(where(), limit=5)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # what a pool of worker processes does; nothing of the tests may run on here
        pid, _loop = background.run(where(), limit=5)
        os.write(write, str(pid).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        assert int(said.read()) == child
    assert os.waitpid(child, 0)[1] == 0
    assert threading.current_thread() is threading.main_thread()
