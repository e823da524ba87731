"""A5: with every trigger off, a run is cut back or taken out. The chain of heads misses it, and it
does nothing a second time.
"""

import io

import pytest
import structlog
from django.core.management import CommandError, call_command

from agentruns.models import LedgerHead, Run, Unchained
from agentruns.planner.history import result_words
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.heads import chain_heads
from agentruns.protocol.lease import take_lease
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, now
from tests.agentruns.verify.breaking import breaches, sql, whats
from tests.pausing import at_once


def head() -> str:
    printed = io.StringIO()
    call_command("verify_ledger", "--heads", stdout=printed)
    return printed.getvalue().strip()


def verified(*options: str) -> str:
    printed = io.StringIO()
    call_command("verify_ledger", *options, stdout=printed)
    return printed.getvalue()


def cut_back_to_its_beginning(run: Run) -> None:
    """As whoever wants it done again would: rows gone, the head put back, queued."""
    for table in ("toolcall", "output", "checkpoint"):
        sql(f"DELETE FROM agentruns_{table} WHERE run_id = %s", run.pk)
    sql("DELETE FROM agentruns_ledgerevent WHERE run_id = %s AND seq > 1", run.pk)
    sql(
        "UPDATE agentruns_run r SET status = 'queued', turn = 0, started_at = NULL, "
        "ledger_seq = 1, ledger_head = e.hash FROM agentruns_ledgerevent e "
        "WHERE r.id = %s AND e.run_id = r.id",
        run.pk,
    )


@pytest.mark.breaks_ledger
def test_a_run_cut_back_to_its_creation_is_not_done_again(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.book")
    steps.act(call)
    chain_heads()
    cut_back_to_its_beginning(run)
    assert outside.effects == [("test.book", call.request_id)]

    with structlog.testing.capture_logs() as logs:
        steps.ring_again(run)
        assert take_lease(run.pk, epoch=1) is None

    assert (now(run).status, now(run).failure) == ("failed", "ledger_cut_back")
    assert [each["log_level"] for each in logs if each["event"] == "ledger.cut_back"] == ["error"]
    assert "and is no more" in whats("I6")[0]


@pytest.mark.breaks_ledger
def test_a_call_set_back_to_before_its_gate_is_not_sent_again(
    steps: Steps, outside: Outside
) -> None:
    run, (call, _other) = steps.running("test.book", "test.post")
    before = now(run)
    steps.act(call)
    chain_heads()
    sql(
        "UPDATE agentruns_toolcall SET state = 'approved', receipt = NULL, response = '', "
        "ended_at = NULL, gate_passed_at = NULL, claim_token = '', claim_expires_at = NULL "
        "WHERE id = %s",
        call.pk,
    )
    sql(
        "DELETE FROM agentruns_ledgerevent WHERE run_id = %s AND seq > %s",
        run.pk,
        before.ledger_seq,
    )
    sql(
        "UPDATE agentruns_run SET ledger_seq = %s, ledger_head = %s WHERE id = %s",
        before.ledger_seq,
        before.ledger_head,
        run.pk,
    )

    call = steps.act(call)

    assert (call.state, call.reason) == ("denied", "ledger_cut_back")
    assert result_words(call) == "Not executed: records of this run are missing."
    assert len(outside.effects) == 1


@pytest.mark.breaks_ledger
def test_a_run_that_was_taken_out_is_missed(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    steps.act(call)
    chain_heads()
    tables = ("checkpoint", "output", "toolcall", "grant", "ledgerevent", "stoprequest")
    for table in tables:
        sql(f"DELETE FROM agentruns_{table} WHERE run_id = %s", run.pk)
    sql("DELETE FROM agentruns_run WHERE id = %s", run.pk)

    found = breaches()["I6"]
    assert {each.run_id for each in found} == {run.pk}


@pytest.mark.breaks_ledger
def test_heads_that_were_taken_out_are_missed(steps: Steps) -> None:
    """From the middle by the chain, from the end by a head that somebody has kept."""
    runs = [steps.start() for _ in range(3)]
    for _run in runs:
        chain_heads()
        steps.start()
    kept = head()
    assert verified("--expect", kept)

    sql("DELETE FROM agentruns_ledgerhead WHERE number = 2")
    assert "is not chained to the one before" in whats("I6")[0]
    sql("DELETE FROM agentruns_ledgerhead WHERE number > 1")
    with pytest.raises(CommandError):
        verified("--expect", kept)


@pytest.mark.breaks_ledger
def test_a_note_for_the_chain_that_was_taken_away_is_missed(steps: Steps) -> None:
    run = steps.start()
    assert whats("I6") == []
    Unchained.objects.all().delete()

    assert "is not in the chain of heads" in whats("I6")[0]
    assert breaches()["I6"][0].run_id == run.pk


def test_a_kept_head_stays_a_beginning_of_the_chain(steps: Steps) -> None:
    assert head() == "0:"
    run, (call,) = steps.running("test.book")
    assert chain_heads() == 1
    kept = head()
    steps.act(call)
    assert chain_heads() == 1
    assert chain_heads() == 0

    assert head() != kept
    assert "✕" not in verified("--expect", kept)
    assert list(LedgerHead.objects.values_list("run_id", flat=True)) == [run.pk] * 2
    with pytest.raises(CommandError, match="is not a head"):
        verified("--expect", "something")


def test_chaining_waits_for_no_run_and_no_run_for_it(steps: Steps) -> None:
    """Several at once add each head once, while runs are at work."""
    run, calls = steps.running(*["test.book"] * 5)
    work = [lambda c=call: pass_gate(steps.claim(c)) for call in calls[:1]]

    at_once([*work, *[chain_heads] * 4])
    chain_heads()

    assert not Unchained.objects.exists()
    assert LedgerHead.objects.filter(run_id=run.pk).last().seq == now(run).ledger_seq
    assert whats("I6") == []
