"""I4 and I7, broken by hand."""

import pytest
from django.utils import timezone

from agentruns.models import Run, ToolCall
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps
from tests.agentruns.verify.breaking import at_number, record, sql, whats
from tests.forging import rewrite

pytestmark = pytest.mark.breaks_ledger


def test_a_call_that_is_in_no_group(run: Run) -> None:
    sql("UPDATE agentruns_toolcall SET state = 'lost' WHERE number = 1")

    assert "in no group" in whats("I4")[0]


def test_a_call_that_is_undone_and_never_landed(run: Run) -> None:
    sql("UPDATE agentruns_toolcall SET undo_state = 'undone' WHERE number = 2")

    assert "is undone, and it is voided" in whats("I4")[0]


def test_a_call_that_is_said_not_to_have_started_with_items_out(batch: Run) -> None:
    sql("UPDATE agentruns_toolcall SET state = 'voided'")

    assert "is voided; 3 of its items are out" in whats("I4")[0]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM agentruns_callitem WHERE position = 2",
        "DELETE FROM agentruns_callitem",
        "DELETE FROM agentruns_ledgerevent WHERE kind = 'call.item_landed' AND mod(seq, 2) = 0",
    ],
    ids=["a receipt is gone", "all receipts are gone", "an event is gone"],
)
def test_items_that_are_not_those_of_the_ledger(batch: Run, statement: str) -> None:
    sql(statement)

    assert "has other items than its ledger" in whats("I4")[0]


def test_a_call_that_left_a_terminal_state(run: Run) -> None:
    sql("UPDATE agentruns_toolcall SET state = 'in_flight' WHERE state = 'voided'")

    assert "is in_flight; its ledger says voided" in whats("I7")[0]


def test_a_run_that_forgot_its_stop(run: Run) -> None:
    sql("UPDATE agentruns_run SET status = 'running'")

    assert "is running; its ledger says" in whats("I7")[0]


UNPROVEN = {
    "a doubt in a clean run": "UPDATE agentruns_toolcall SET state = 'in_doubt' WHERE number = 2",
    "a call in flight": "UPDATE agentruns_toolcall SET state = 'in_flight' WHERE number = 2",
    "a driver at work": "UPDATE agentruns_run SET lease_holder = 'somebody'",
    "a dirty run without a doubt": "UPDATE agentruns_run SET status = 'stopped_dirty'",
    "a drain with nothing in flight": "UPDATE agentruns_run SET status = 'draining'",
    "a stop that no driver delays": "UPDATE agentruns_run SET status = 'cancel_requested'",
    "a finished run with a question": """
        UPDATE agentruns_run SET status = 'completed';
        UPDATE agentruns_toolcall SET state = 'awaiting_approval' WHERE number = 3""",
}


@pytest.mark.parametrize("statement", UNPROVEN.values(), ids=UNPROVEN)
def test_a_run_that_says_what_its_rows_do_not(run: Run, statement: str) -> None:
    sql(statement)

    assert any("its rows say otherwise" in what for what in whats("I7"))


def test_an_event_that_cannot_follow(run: Run) -> None:
    record(run, "call.voided", at_number(run, 1))

    assert "call.voided (seq " in whats("I7")[0]
    assert "out of landed" in whats("I7")[0]


def test_a_contradiction_without_its_mark(run: Run) -> None:
    rewrite(ToolCall.objects.filter(number=1), contradicted_at=timezone.now())

    assert "contradiction is not marked" in whats("I7")[0]


def test_a_text_that_became_complete_after_it_was_cut(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    steps.stop(run)
    steps.give_back(lease)
    sql("UPDATE agentruns_output SET status = 'complete'")

    assert "the text of turn 1: is complete" in whats("I7")[0]


@pytest.mark.parametrize(
    "horizon",
    [
        "jsonb_set(data, '{horizon_at}', to_jsonb((at + interval '1 second')::text))",
        "data - 'horizon_at'",
    ],
    ids=["too soon", "nobody says when"],
)
def test_a_doubt_that_was_ended_too_soon(steps: Steps, outside: Outside, horizon: str) -> None:
    outside.answers["test.book"] = "gone"
    _run, (call,) = steps.running("test.book")
    steps.look_up(steps.act(call))
    assert whats("I7") == []

    sql(f"UPDATE agentruns_ledgerevent SET data = {horizon} WHERE kind = 'call.failed'")

    (wrong,) = whats("I7")
    assert wrong.startswith(f"call {call.pk} was called not landed")
    assert wrong.endswith("too soon")
