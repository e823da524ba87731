"""I5, broken by hand."""

from datetime import UTC, datetime

import pytest

from agentruns.models import Run, StopRequest
from tests.agentruns.verify.breaking import record, sql, whats
from tests.forging import rewrite

pytestmark = pytest.mark.breaks_ledger


def test_a_stop_that_the_ledger_does_not_have(run: Run) -> None:
    at = datetime.now(UTC)
    StopRequest.objects.create(run=run, epoch=1, requested_at=at, no_new_effect_at=at)

    assert "in the ledger 0 times" in whats("I5")[0]


def test_a_stop_in_the_ledger_that_nobody_asked_for(run: Run) -> None:
    sql("DELETE FROM agentruns_stoprequest")

    assert whats("I5") == [
        "a stop of epoch 2 is in the ledger, and nobody's request",
        "is stopped_clean; nobody asked for it",
    ]


def test_two_stops_of_one_epoch_in_the_ledger(run: Run) -> None:
    record(run, "stop.requested", epoch=2)

    assert "in the ledger 2 times" in whats("I5")[0]


def test_a_stop_without_its_answer(run: Run) -> None:
    rewrite(StopRequest.objects.all(), answer={})

    assert "no answer of its own" in whats("I5")[0]


@pytest.mark.parametrize("epoch", [2, 1, 9], ids=["the same", "an older one", "one to come"])
def test_an_epoch_that_does_not_grow(run: Run, epoch: int) -> None:
    record(run, "run.requeued", epoch=epoch, turn=1)

    assert f"of epoch {epoch} is no step" in whats("I5")[0]
