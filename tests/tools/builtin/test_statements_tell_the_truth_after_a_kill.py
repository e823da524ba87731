"""A process, or a connection, that dies in the middle of sql.execute: what is said then is true."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import lookup, prepare, tool, undo
from tests.tools.builtin.shop import PRICES, Shop
from tests.tools.conftest import NewContext
from tools.contract import Draft, NotLanded, Receipt, UndoReceipt

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

NAME = "sql.execute"


def impl() -> Any:
    return tool(NAME).impl


def killed(work: Callable[[], object]) -> None:
    """Do the work in a process of its own, which is killed (-9) right after it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    _pid, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "it did not get there"


def raising(shop: Shop) -> Any:
    params = {"list": shop.list, "percent": 5}
    return tool(NAME).parse({"statement": "price_list.raise", "params": params})


def test_what_a_dead_process_prepared_is_found_and_dropped(
    shop: Shop, new_context: NewContext
) -> None:
    ctx = new_context()
    killed(lambda: prepare(NAME, ctx, raising(shop)))
    assert list(impl().drafts()) == [ctx.request_id]
    assert lookup(NAME, ctx) == NotLanded()
    impl().void(ctx, Draft())
    assert list(impl().drafts()) == []
    assert shop.prices() == PRICES


def test_what_a_dead_process_prepared_can_be_taken_over(
    shop: Shop, new_context: NewContext
) -> None:
    ctx = new_context()
    killed(lambda: prepare(NAME, ctx, raising(shop)))
    receipt = impl().commit(ctx, raising(shop), Draft({"gid": "kept by a ledger"}))
    assert lookup(NAME, ctx) == receipt
    assert len(shop.effects(ctx.request_id)) == 1


def test_what_landed_before_the_process_died_is_found_and_not_done_again(
    shop: Shop, new_context: NewContext
) -> None:
    ctx = new_context()
    draft = prepare(NAME, ctx, raising(shop))
    killed(lambda: impl().commit(ctx, raising(shop), draft))
    after = shop.prices()
    found = lookup(NAME, ctx)
    assert isinstance(found, Receipt)
    assert impl().commit(ctx, raising(shop), draft) == found
    assert shop.prices() == after != PRICES


def test_an_undo_is_done_once_though_its_process_died(shop: Shop, new_context: NewContext) -> None:
    ctx = new_context()
    receipt = impl().commit(ctx, raising(shop), None)
    killed(lambda: undo(NAME, ctx, receipt))
    assert shop.prices() == PRICES
    shop.run("UPDATE prices SET price = 99 WHERE list = %s", shop.list)
    assert isinstance(undo(NAME, ctx, receipt), UndoReceipt)
    assert set(shop.prices().values()) == {"99.00"}


@contextmanager
def losing_the_answer_to(words: bytes, url: str, folder: Path) -> Iterator[str]:
    """A door to the database that hangs up instead of giving the answer to `words`."""
    parts = conninfo_to_dict(url)
    port = parts.get("port") or 5432
    there = f"{parts['host']}/.s.PGSQL.{port}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / f".s.PGSQL.{port}"))
        listener.listen()

        def serve() -> None:
            client, _address = listener.accept()
            with client, socket.socket(socket.AF_UNIX) as server:
                server.connect(there)
                while asked := client.recv(65536):
                    server.sendall(asked)
                    answer = server.recv(65536)
                    if words in asked:
                        return
                    client.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield make_conninfo(url, host=str(folder))
        thread.join(10)


def test_an_answer_that_was_lost_is_doubt_and_then_the_truth(
    shop: Shop, new_context: NewContext, settings: Settings, scratch: Path
) -> None:
    url = settings.SQL_TOOL_URL
    if not str(conninfo_to_dict(url).get("host", "")).startswith("/"):
        pytest.skip("the database has no Unix socket")
    ctx = new_context()
    draft = prepare(NAME, ctx, raising(shop))
    folder = scratch / ctx.request_id[-8:]
    folder.mkdir()
    with losing_the_answer_to(b"COMMIT PREPARED", url, folder) as door:
        settings.SQL_TOOL_URL = door
        with pytest.raises(psycopg.OperationalError):
            impl().commit(ctx, raising(shop), draft)
    settings.SQL_TOOL_URL = url
    assert isinstance(lookup(NAME, ctx), Receipt)
    assert len(shop.effects(ctx.request_id)) == 1
