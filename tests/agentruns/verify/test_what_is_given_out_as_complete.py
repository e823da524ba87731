"""I8 and I11, broken by hand."""

from collections.abc import Iterable
from typing import Any

import pytest

from agentruns.models import Output, Run, ToolCall
from agentruns.models.output import CompleteOutputs
from agentruns.planner import history as planner
from tests.agentruns.steps import Steps, now
from tests.agentruns.verify.breaking import breaches, sql, whats
from tests.forging import rewrite

pytestmark = pytest.mark.breaks_ledger


@pytest.fixture
def cut(steps: Steps) -> Run:
    """A stopped run with one whole answer, and one that was cut off."""
    run, (call,) = steps.running("test.book")
    steps.act(call)
    lease = steps.think(run)
    steps.stop(run)
    steps.give_back(lease)
    return now(run)


def test_a_whole_answer_and_one_that_was_cut_off(cut: Run) -> None:
    assert breaches() == {}


def test_an_answer_that_is_longer_than_it_was(cut: Run) -> None:
    sql("UPDATE agentruns_output SET text = text || '!' WHERE turn = 1")

    assert "the text of turn 1 has 32 characters; it ended at 31" in whats("I8")[0]


def test_an_answer_whose_length_is_not_that_of_the_ledger(cut: Run) -> None:
    sql("UPDATE agentruns_output SET text = text || '!', \"offset\" = 32 WHERE turn = 1")

    assert "by its ledger at [31]" in whats("I8")[0]


def test_an_answer_that_was_cut_off_and_is_marked_as_complete(cut: Run) -> None:
    sql("UPDATE agentruns_output SET status = 'complete' WHERE turn = 2")

    assert "by its ledger at []" in whats("I8")[0]


def test_a_complete_answer_that_ended_as_no_whole_one_does(cut: Run) -> None:
    rewrite(Output.objects.filter(turn=1), finish_reason="length")

    assert "is complete, and ended as length" in whats("I8")[0]


def test_a_finished_run_whose_last_answer_is_not_complete(cut: Run) -> None:
    sql("UPDATE agentruns_run SET status = 'completed'")

    assert "is completed; its last answer is not" in whats("I8")


def test_a_door_that_gives_out_what_was_cut_off(cut: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompleteOutputs, "get_queryset", lambda self: Output.objects.all())

    assert whats("I8") == [
        "the text of turn 2 is incomplete; it is given out as complete: True",
        "its history says other than its complete answers",
    ]


def test_two_calls_that_share_one_result(run: Run) -> None:
    rewrite(ToolCall.objects.all(), provider_call_id="the same")

    assert breaches()["I11"][0].run_id == run.pk


def test_a_call_whose_result_is_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = planner.history

    def short(*rows: Any) -> Iterable[Any]:
        return whole(*rows)[:-1]

    monkeypatch.setattr("agentruns.verify.facts.history", short)

    assert whats("I11") != []
