"""What is known to have had no effect, what has landed, and what nobody knows (protocol §8)."""

import time
from typing import Any

import pytest

from tests.tools.builtin.answering import answering
from tests.tools.imports.calls import Caller
from tests.tools.imports.conftest import Allow, look
from tests.tools.imports.serving import BOOK, LOGIN, McpServer
from tools import registry
from tools.contract import Draft
from tools.errors import NoEffect, Unclear
from tools.imports import mcp
from tools.imports.models import ToolSource
from tools.imports.offers import ImportProblem

pytestmark = pytest.mark.django_db


def test_it_lands_with_what_the_server_said(
    program: McpServer, allow: Allow, caller: Caller
) -> None:
    look(program)

    receipt = caller.call("acme.book", what="a room", day=3)

    assert receipt.response == 'book: {"what": "a room", "day": 3}'
    assert receipt.data["content"] == [{"type": "text", "text": receipt.response}]
    assert caller.sent == [True]
    (began,) = program.journal("began")
    assert (began["arguments"], began["key"]) == (
        {"what": "a room", "day": 3},
        caller.ctx.request_id,
    )


def test_the_same_over_http_with_a_secret_from_the_environment(
    http_server: McpServer, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TOKEN", "Bearer s3cr3t-of-acme")
    look(http_server, secrets={"Authorization": "ACME_TOKEN"})

    receipt = caller.call("acme.book", what="s3cr3t-of-acme")

    assert http_server.journal("began")[0]["arguments"] == {"what": "s3cr3t-of-acme"}
    assert receipt.response == 'book: {"what": "**********"}'
    assert "s3cr3t" not in str(ToolSource.objects.values())


def test_without_its_secret_nothing_is_sent(
    program: McpServer, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TOKEN", "secret")
    look(program, secrets={"TOKEN": "ACME_TOKEN"})
    monkeypatch.delenv("ACME_TOKEN")

    with pytest.raises(NoEffect, match="ACME_TOKEN is not set") as refused:
        caller.call("acme.book", what="a room")

    assert refused.value.code == "secret_missing"


def test_a_refusal_had_no_effect(program: McpServer, caller: Caller) -> None:
    look(program)
    program.order(mode="refuses")

    with pytest.raises(NoEffect, match="no such person") as refused:
        caller.call("acme.book", what="a room")

    assert (refused.value.code, refused.value.is_passing) == ("refused", False)


@pytest.mark.parametrize(("mode", "said"), [("wrong", "went wrong"), ("broken", "out of order")])
def test_any_other_error_leaves_doubt_in_the_servers_words(
    program: McpServer, caller: Caller, mode: str, said: str
) -> None:
    look(program)
    program.order(mode=mode)

    with pytest.raises(Unclear, match=said):
        caller.call("acme.book", what="a room")


def test_a_server_that_dies_over_it_leaves_doubt(program: McpServer, caller: Caller) -> None:
    look(program)
    program.order(mode="dies")

    with pytest.raises(Unclear, match="No answer"):
        caller.call("acme.book", what="a room")

    assert program.journal("done")


def test_a_server_that_is_not_there_is_asked_again_later(
    http_server: McpServer, caller: Caller
) -> None:
    look(http_server)
    ToolSource.objects.update(address="http://127.0.0.1:9/mcp")

    with pytest.raises(NoEffect) as refused:
        caller.call("acme.book", what="a room")

    assert (refused.value.code, refused.value.is_passing) == ("unreachable", True)


def test_a_program_that_is_not_there_too(program: McpServer, caller: Caller) -> None:
    look(program)
    ToolSource.objects.update(address="/no/such/program")

    with pytest.raises(NoEffect) as refused:
        caller.call("acme.book", what="a room")

    assert refused.value.code == "unreachable"


def test_a_secret_argument_goes_out_and_stays_out_of_the_receipt(
    program: McpServer, caller: Caller
) -> None:
    program.offers(BOOK, LOGIN)
    look(program)

    receipt = caller.call("acme.login", what="me", pin="9273-5521")

    assert program.journal("began")[0]["arguments"]["pin"] == "9273-5521"
    assert "9273" not in str(receipt)


@pytest.mark.parametrize(("mode", "said"), [("odd", "did not keep to MCP"), ("repeats", "xxx")])
def test_a_secret_that_an_error_repeats_is_not_told_not_even_a_part_of_it(
    plain: McpServer, caller: Caller, mode: str, said: str
) -> None:
    plain.offers(LOGIN)
    look(plain)
    plain.order(mode=mode)

    with pytest.raises(Unclear, match=said) as unclear:
        caller.call("acme.login", what="me", pin="9273-5521-9273-5521")

    assert "9273" not in str(unclear.value)


def test_what_is_not_the_protocol_is_neither_told_nor_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ACME_TOKEN", "Bearer s3cr3t-of-acme")
    said = '{"jsonrpc": "2.0", "said": "Bearer s3cr3t-of-acme"}'
    with answering(200, {"Content-Type": "application/json"}, said) as server:
        source = ToolSource(
            slug="acme",
            kind=ToolSource.Kind.MCP_HTTP,
            address=server.url,
            secrets={"Authorization": "ACME_TOKEN"},
        )
        with pytest.raises(ImportProblem, match="did not keep to MCP") as problem:
            mcp.listing(source)

    assert server.requests[0].headers["Authorization"] == "Bearer s3cr3t-of-acme"
    assert "s3cr3t" not in f"{problem.value} {caplog.text}"


def test_an_answer_counts_also_of_a_server_that_does_not_end(
    plain: McpServer, caller: Caller
) -> None:
    look(plain)
    began = time.monotonic()
    caller.call("acme.book", what="a room")
    took = time.monotonic() - began
    plain.order(mode="stays")

    # Less than what it takes to end the program by force, unless this machine is very slow.
    receipt = caller.call("acme.book", timeout=2 * took + 1, what="a room")

    assert receipt.response == "It is done."
    assert caller.told == []


def test_a_call_that_another_executor_has_prepared_is_made_all_the_same(
    plain: McpServer, caller: Caller
) -> None:
    look(plain)
    caller.prepares = False

    assert caller.call("acme.book", what="a room").response == "It is done."


def test_what_was_prepared_and_is_dropped_is_never_sent(plain: McpServer, caller: Caller) -> None:
    look(plain)
    item = registry.get("acme.book")
    assert item is not None
    impl: Any = item.impl

    impl.void(caller.ctx, impl.prepare(caller.ctx, item.parse({"what": "a room"})))
    impl.void(caller.ctx, Draft())

    assert plain.journal() == []
