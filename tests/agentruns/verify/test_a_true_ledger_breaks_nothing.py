"""manage.py verify_ledger finds nothing where the protocol alone has written."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentruns.models import Run, ToolCall
from agentruns.protocol.execute import execute_call
from agentruns.verify import Scope, verify
from agentruns.verify.reading import batches
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now
from tests.agentruns.verify.breaking import breaches

OF_THE_DATABASE = {"I1", "I4", "I5", "I6", "I7", "I8", "I10", "I11", "I12"}


def looked_at() -> set[str]:
    return {result.invariant.code for result in verify(Scope()) if result.checked}


def test_a_stopped_run(run: Run) -> None:
    assert breaches() == {}
    assert looked_at() == OF_THE_DATABASE


def test_a_run_that_was_undone(undone: Run) -> None:
    assert breaches() == {}
    assert looked_at() == OF_THE_DATABASE | {"I9"}


def test_a_run_with_consent_and_items(approved: Run, batch: Run) -> None:
    assert breaches() == {}


def test_a_unit_that_is_finished_after_the_stop(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    calls = [steps.propose(lease, f"test.{name}", "shoes") for name in ("reserve", "pay", "ship")]
    steps.finish(lease)
    steps.act(calls[0])
    steps.stop(run)
    for call in calls[1:]:
        execute_call(call.pk, epoch=call.epoch)

    assert [anew(call).state for call in calls] == ["landed"] * 3
    assert breaches() == {}


def test_consent_that_is_given_back_by_passing_trouble(steps: Steps, outside: Outside) -> None:
    outside.answers["test.send"] = ["busy"]
    _run, (call,) = steps.running("test.send")
    steps.approve(call)
    assert steps.act(call).state == "approved"
    assert breaches() == {}

    ToolCall.objects.update(next_attempt_at=None)
    steps.act(call)

    assert anew(call).state == "landed"
    assert breaches() == {}


def test_a_run_that_was_held_back_and_taken_up_again(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    steps.stop(run, pending="freeze")
    steps.resume(run)
    assert steps.act(call).state == "landed"
    steps.stop(run)

    assert now(run).epoch == 4
    assert breaches() == {}


def test_reading_many_runs_takes_no_more_queries_than_one(steps: Steps) -> None:
    steps.running("test.book", "test.send")
    with CaptureQueriesContext(connection) as for_one:
        verify(Scope())
    for _ in range(4):
        steps.running("test.book", "test.send")

    with CaptureQueriesContext(connection) as for_five:
        verify(Scope())

    assert len(for_five) == len(for_one)


@pytest.mark.parametrize("limit", [("RUNS", 2), ("EVENTS", 1)], ids=["few runs", "few events"])
def test_every_run_is_read_once_whatever_fits_into_a_batch(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    started = {steps.start().pk for _ in range(5)}
    monkeypatch.setattr(f"agentruns.verify.reading.{limit[0]}", limit[1])

    read = [facts.run.pk for batch in batches(Scope()) for facts in batch]

    assert (len(read), set(read)) == (5, started)
