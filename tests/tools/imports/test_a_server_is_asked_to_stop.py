"""The server's own cancellation: sent, and kept whether it was heard and what it said (R34)."""

import psutil
import pytest

from tests.pausing import in_background
from tests.tools.imports.calls import Caller
from tests.tools.imports.conftest import look
from tests.tools.imports.serving import McpServer
from tools import registry
from tools.contract import Receipt, StopSignal
from tools.errors import Unclear
from tools.imports.mcp import CANCELLATION

pytestmark = pytest.mark.django_db(transaction=True)


def stopped_under_way(server: McpServer, caller: Caller, mode: str) -> Receipt | BaseException:
    """A call that a person stops once the server has begun: what came of it."""
    look(server)
    assert registry.get("acme.book") is not None
    server.order(mode=mode)
    with in_background(caller.call, "acme.book", what="a room") as call:
        server.wait_for("began")
        caller.is_stopped = True
        return call.exception(30) or call.result()


def test_one_that_hears_and_says_nothing_leaves_doubt(program: McpServer, caller: Caller) -> None:
    ended = stopped_under_way(program, caller, "slow")

    assert isinstance(ended, Unclear)
    assert "has not said" in str(ended)
    assert caller.told == [(CANCELLATION, "sent")]
    assert program.journal("heard")
    assert not program.journal("done")


def test_over_http_it_is_confirmed(http_server: McpServer, caller: Caller) -> None:
    ended = stopped_under_way(http_server, caller, "slow")

    assert isinstance(ended, Unclear)
    assert caller.told == [(CANCELLATION, "sent"), (CANCELLATION, "acknowledged")]
    assert http_server.journal("heard")


def test_one_that_confirms_has_still_done_who_knows_what(plain: McpServer, caller: Caller) -> None:
    ended = stopped_under_way(plain, caller, "confirms")

    assert isinstance(ended, Unclear)
    assert "says that it was cancelled" in str(ended)
    assert caller.told == [(CANCELLATION, "sent"), (CANCELLATION, "acknowledged")]


def test_one_that_declines_has_not_confirmed_whatever_its_words(
    plain: McpServer, caller: Caller
) -> None:
    """L3."""
    ended = stopped_under_way(plain, caller, "declines")

    assert isinstance(ended, Unclear)
    assert "It cannot be cancelled any more." in str(ended)
    assert caller.told == [(CANCELLATION, "sent")]


def test_one_that_finishes_all_the_same_has_landed(plain: McpServer, caller: Caller) -> None:
    ended = stopped_under_way(plain, caller, "finishes")

    assert isinstance(ended, Receipt)
    assert ended.response == "It is done."
    assert caller.told == [(CANCELLATION, "sent")]


def test_of_one_that_hears_nothing_that_is_said(plain: McpServer, caller: Caller) -> None:
    ended = stopped_under_way(plain, caller, "silent")

    assert isinstance(ended, Unclear)
    assert caller.told == [(CANCELLATION, "unknown")]


def test_whatever_the_program_has_started_ends_with_the_call(
    plain: McpServer, caller: Caller
) -> None:
    """L2."""
    ended = stopped_under_way(plain, caller, "family")

    assert isinstance(ended, Unclear)
    assert not psutil.pid_exists(plain.journal("started")[0]["pid"])


def test_the_same_when_its_time_is_over(plain: McpServer, caller: Caller) -> None:
    look(plain)
    plain.order(mode="family")

    with pytest.raises(Unclear):
        caller.call("acme.book", timeout=4.0, what="a room")

    assert not psutil.pid_exists(plain.journal("started")[0]["pid"])


def test_when_the_time_is_over_it_is_asked_too(program: McpServer, caller: Caller) -> None:
    look(program)
    program.order(mode="slow")

    with pytest.raises(Unclear):
        caller.call("acme.book", timeout=6.0, what="a room")

    assert program.journal("heard")
    assert caller.told == [(CANCELLATION, "sent")]


def test_what_was_stopped_before_it_was_sent_is_not_sent(
    program: McpServer, caller: Caller
) -> None:
    look(program)
    caller.is_stopped, caller.prepares = True, False

    with pytest.raises(StopSignal):
        caller.call("acme.book", what="a room")

    assert (caller.told, caller.sent, program.journal()) == ([], [], [])
