"""I6, broken by hand."""

import pytest

from agentruns.models import Run
from agentruns.verify import Breach
from tests.agentruns.verify.breaking import breaches, sql, whats

pytestmark = pytest.mark.breaks_ledger


def test_an_event_that_was_changed(run: Run) -> None:
    sql("UPDATE agentruns_ledgerevent SET actor = 'nobody' WHERE seq = 3")

    assert breaches() == {"I6": [Breach(run.pk, "event 3 is not what was written")]}


def test_an_event_that_was_taken_out(run: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'turn.started'")

    assert "event 3 is missing" in whats("I6")[0]


def test_an_event_that_was_taken_out_and_the_rest_renumbered(run: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'turn.started'")
    sql("UPDATE agentruns_ledgerevent SET seq = seq + 1000 WHERE seq > 3")
    sql("UPDATE agentruns_ledgerevent SET seq = seq - 1001 WHERE seq > 1000")

    assert "event 3 is not chained to the one before" in whats("I6")[0]


def test_the_last_event_cut_off(run: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE seq = %s", run.ledger_seq)

    assert any("its last event is another" in what for what in whats("I6"))


def test_a_ledger_that_makes_no_sense_is_a_breach_and_no_crash(run: Run) -> None:
    sql("UPDATE agentruns_ledgerevent SET data = '[]'")

    found = breaches()
    assert "is not what was written" in found["I6"][0].what
    assert "cannot be read" in found["I5"][0].what
