"""I10, broken by hand: a sweeper was at work, and left a stopped run lying."""

from datetime import timedelta

import pytest
from django.db.models import F

from agentruns.models import LedgerEvent, Run, StopRequest, ToolCall
from agentruns.protocol.gate import pass_gate
from tests.agentruns.steps import Steps, now
from tests.agentruns.verify.breaking import at_number, sql, whats
from tests.forging import rewrite, without_triggers

pytestmark = pytest.mark.breaks_ledger


@pytest.fixture
def draining(steps: Steps) -> Run:
    """A stopped run with a call in flight, which nobody has reported."""
    run, (call,) = steps.running("test.book")
    assert pass_gate(steps.claim(call))
    steps.stop(run)
    assert now(run).status == "draining"
    return now(run)


def as_if_asked_earlier(run: Run, **ago: float) -> None:
    """The stop, its promise and the call that it waits for are that much older."""
    earlier = timedelta(**ago)
    (stop,) = StopRequest.objects.filter(run=run)
    until = stop.no_new_effect_at + timedelta(seconds=30) - earlier
    stop.answer["waits_for"]["until"] = until.isoformat()
    stop.requested_at -= earlier
    stop.no_new_effect_at -= earlier
    with without_triggers():
        stop.save()
    ToolCall.objects.filter(run=run).update(deadline_at=F("deadline_at") - earlier)


def a_sweep(steps: Steps, **ago: float) -> None:
    """A sweeper left its trace in another run, so long ago."""
    other = steps.start()
    event = LedgerEvent.objects.create(run=other, kind="lease.taken_away", actor="sweeper")
    seconds = timedelta(**ago).total_seconds()
    sql(
        "UPDATE agentruns_ledgerevent SET at = at - make_interval(secs => %s) WHERE id = %s",
        seconds,
        event.pk,
    )


def test_a_run_that_is_left_lying_by_a_sweeper_at_work(steps: Steps, draining: Run) -> None:
    as_if_asked_earlier(draining, minutes=5)
    a_sweep(steps, minutes=2)

    (what,) = whats("I10")
    assert "of epoch 2 has not come to rest, 270 s late" in what


def test_nobody_is_to_blame_while_nobody_is_known_to_be_at_work(
    steps: Steps, draining: Run
) -> None:
    as_if_asked_earlier(draining, minutes=5)
    assert whats("I10") == []

    a_sweep(steps, minutes=10)
    assert whats("I10") == [], "that was before"
    a_sweep(steps, seconds=2)
    assert whats("I10") == [], "it has just come back"


def test_a_run_that_came_to_rest_late(steps: Steps, draining: Run) -> None:
    as_if_asked_earlier(draining, minutes=5)
    a_sweep(steps, minutes=2)
    steps.sweep()
    assert now(draining).status.startswith("stopped")

    assert "came to rest 270 s late" in whats("I10")[0]


def test_a_call_that_cannot_be_interrupted_has_all_of_its_time(steps: Steps, draining: Run) -> None:
    as_if_asked_earlier(draining, minutes=5)
    a_sweep(steps, minutes=2)
    long = "UPDATE agentruns_toolcall SET is_uninterruptible = true, deadline_at = now()"
    sql(long + " + interval '1 hour'")

    assert whats("I10") == []


def test_a_stop_that_has_settled_by_its_row_only(draining: Run) -> None:
    rewrite(StopRequest.objects.all(), settled_at=F("requested_at"))

    assert "differ on its end" in whats("I10")[0]


def test_a_stop_that_has_settled_by_its_ledger_only(run: Run) -> None:
    assert at_number(run, 1).state == "landed"
    rewrite(StopRequest.objects.all(), settled_at=None)

    assert "differ on its end" in whats("I10")[0]
