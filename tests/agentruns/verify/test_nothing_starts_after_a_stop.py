"""I1, broken by hand."""

import pytest

from agentruns.models import LedgerEvent, Run
from tests.agentruns.steps import Steps, now
from tests.agentruns.verify.breaking import at_number, record, sql, whats

pytestmark = pytest.mark.breaks_ledger


def test_a_call_that_passed_the_gate_after_the_stop(run: Run) -> None:
    record(run, "call.commit_allowed", at_number(run, 2), epoch=1)

    (what,) = whats("I1")
    assert what.endswith("after the stop")


def test_a_call_that_claims_to_finish_a_unit_that_it_is_no_part_of(run: Run) -> None:
    record(run, "call.commit_allowed", at_number(run, 2), epoch=2, finishes_unit="order:shoes")

    assert "finishes nothing that had begun" in whats("I1")[0]


def test_a_unit_that_had_not_begun_when_the_stop_came(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    for name in ("reserve", "pay", "ship"):
        steps.propose(lease, f"test.{name}", "shoes")
    steps.finish(lease)
    steps.stop(run)
    record(run, "call.commit_allowed", at_number(run, 1), epoch=2, finishes_unit="order:shoes")

    assert "finishes nothing that had begun" in whats("I1")[0]


def test_a_batch_that_went_on_after_the_stop(steps: Steps, batch: Run) -> None:
    steps.stop(batch)
    record(now(batch), "call.item_landed", at_number(batch, 1), key="it 4", position=4)
    assert whats("I1") == [], "the one that it was at"

    record(now(batch), "call.item_landed", at_number(batch, 1), key="it 5", position=5)

    (what,) = whats("I1")
    assert f"went on to another item (seq {now(batch).ledger_seq}) after the stop" in what


def test_what_a_look_up_brings_to_light_after_the_stop_was_out_before(
    steps: Steps, batch: Run
) -> None:
    steps.stop(batch)
    for n in (4, 5):
        event = record(batch, "call.item_landed", at_number(batch, 1), key=f"it {n}", position=n)
        sql("UPDATE agentruns_ledgerevent SET actor = 'sweeper' WHERE id = %s", event.pk)

    assert whats("I1") == []


def test_an_event_that_names_no_epoch_is_not_passed_over(run: Run) -> None:
    LedgerEvent.objects.create(
        run=run, kind="call.commit_allowed", actor="x", call=at_number(run, 2), data={}
    )

    assert len(whats("I1")) == 1
