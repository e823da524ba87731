"""I9 by the ledger, broken by hand."""

import pytest

from agentruns.models import LedgerEvent, Run, ToolCall
from compensation.models import Compensation
from tests.agentruns.verify.breaking import at_number, record, sql, whats

pytestmark = pytest.mark.breaks_ledger


def undo_of(run: Run, number: int) -> str:
    return Compensation.objects.get(call=at_number(run, number)).pk


def test_a_call_that_was_undone_twice(undone: Run) -> None:
    record(undone, "undo.landed", at_number(undone, 1), undo=undo_of(undone, 1))

    assert any("was undone 2 times" in what for what in whats("I9"))


def test_a_call_that_is_marked_and_whose_undo_never_landed(undone: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'undo.landed'")

    assert any("no undo of it landed" in what for what in whats("I9"))


def test_a_mark_that_is_not_on_the_row(undone: Run) -> None:
    sql("UPDATE agentruns_toolcall SET undo_state = '' WHERE number = 1")

    (what,) = whats("I9")
    assert "its undo and its mark do not agree" in what


def test_a_mark_that_only_the_row_has(run: Run, undone: Run) -> None:
    sql("UPDATE agentruns_toolcall SET undo_state = 'undone' WHERE run_id = %s", run.pk)

    assert any("its undo and its mark do not agree" in what for what in whats("I9"))


def test_an_undo_of_what_had_not_landed(undone: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'call.landed'")

    assert any("undo.started (seq " in what for what in whats("I9"))
    assert any("which had not landed" in what for what in whats("I9"))


def test_an_undo_that_sets_out_again_after_it_landed(undone: Run) -> None:
    record(undone, "undo.started", at_number(undone, 1), undo=undo_of(undone, 1), attempt=2)

    assert any("or was undone" in what for what in whats("I9"))


def test_undos_in_the_order_of_landing(undone: Run) -> None:
    first, second = (at_number(undone, number) for number in (1, 2))
    landed = LedgerEvent.objects.filter(kind="call.landed")
    for call, seq in ((first, 1001), (second, 1000)):
        event = landed.get(call=call)
        sql("UPDATE agentruns_ledgerevent SET seq = %s WHERE id = %s", seq, event.pk)

    assert any("was not carried out in reverse order" in what for what in whats("I9"))


def test_a_step_that_is_where_its_ledger_does_not_lead(undone: Run) -> None:
    sql("UPDATE compensation_compensation SET state = 'planned'")

    assert any("is planned; its ledger says undone" in what for what in whats("I9"))


def test_a_step_that_nobody_asked_for(undone: Run) -> None:
    record(undone, "undo.failed", at_number(undone, 1), undo="comp_0")

    assert "undo comp_0 is in the ledger, and nobody's request" in whats("I9")


def test_a_request_that_the_ledger_does_not_have(undone: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'undo.requested'")

    assert any("its steps are not what the ledger says" in what for what in whats("I9"))


def test_a_request_in_the_ledger_that_nobody_made(undone: Run) -> None:
    record(undone, "undo.requested", request="undo_0", calls=[])

    assert "undo_0 is in the ledger, and nobody's request" in whats("I9")


def test_a_step_that_its_request_did_not_name(undone: Run) -> None:
    sql("UPDATE compensation_compensation SET position = 3 - position")

    assert any("its steps are not what the ledger says" in what for what in whats("I9"))


def test_an_undo_that_never_began_is_no_breach(undone: Run) -> None:
    assert ToolCall.objects.filter(undo_state="undone").count() == 2
    assert whats("I9") == []
