"""The hot path stays short: what a durable call asks of the database is counted here."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentruns.models import ToolCall
from agentruns.protocol.execute import execute_call
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew


def asked(call: ToolCall) -> list[str]:
    """Every statement while the worker does the call, by its first word."""
    with CaptureQueriesContext(connection) as captured:
        execute_call(call.pk, epoch=call.epoch)
    return [query["sql"].split()[0] for query in captured.captured_queries]


def test_a_call_is_two_transactions(steps: Steps, outside: Outside) -> None:
    """Claim and gate; outcome. Each is the lock, one look and one write."""
    _run, (call, _next) = steps.running("test.book", "test.book")

    statements = asked(call)

    assert anew(call).state == "landed"
    assert statements == ["BEGIN", "SELECT", "SELECT", "WITH", "COMMIT"] * 2


def test_a_draft_costs_two_transactions_more(steps: Steps, outside: Outside) -> None:
    """The claim, and the draft that is kept; nothing slow happens between gate and send."""
    _run, (call, _next) = steps.running("test.draft", "test.book")

    statements = asked(call)

    assert anew(call).state == "landed"
    assert statements.count("COMMIT") == 4
    assert len(statements) <= 22


def test_a_message_that_comes_twice_costs_one_look(steps: Steps, outside: Outside) -> None:
    _run, (call, _next) = steps.running("test.book", "test.book")
    steps.act(call)

    assert asked(call) == ["BEGIN", "SELECT", "SELECT", "COMMIT"]
