"""R35: the same effect again in a thread needs a person."""

import json

import pytest

from agentruns.models import Run, ToolCall
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_failed
from agentruns.protocol.turn import Proposal, propose_call
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, pass_time


def _turn(steps: Steps, run: Run, *whats: str, tool: str = "test.book") -> list[ToolCall]:
    lease = steps.think(run)
    calls = [steps.propose(lease, tool, what) for what in whats]
    steps.finish(lease)
    return [anew(call) for call in calls]


def test_an_effect_that_stands_is_not_repeated_without_a_persons_word(
    steps: Steps, outside: Outside
) -> None:
    run = steps.start()
    (first,) = _turn(steps, run, "Tuesday")
    steps.act(first)

    (again,) = _turn(steps, run, "Tuesday")
    assert again.state == "awaiting_approval"
    steps.act(again)
    assert len(outside.effects) == 1

    steps.approve(again)
    assert steps.act(again).state == "landed"
    assert len(outside.effects) == 2


def test_twice_in_one_turn_asks_as_well(steps: Steps) -> None:
    first, again, other = _turn(steps, steps.start(), "Tuesday", "Tuesday", "Wednesday")

    assert [first.state, again.state, other.state] == ["approved", "awaiting_approval", "approved"]


def test_an_approval_that_ran_out_lets_nothing_through_though_none_is_needed_any_more(
    steps: Steps, outside: Outside
) -> None:
    """The first one turned out to have had no effect, so the second repeats nothing: but a person
    was asked about it, and said yes for a time.
    """
    first, again = _turn(steps, steps.start(), "Tuesday", "Tuesday")
    steps.approve(again)
    record_failed(steps.claim(first), "refused", "No.")
    pass_time(again)

    assert (steps.act(again).state, anew(again).reason) == ("denied", "needs_consent")
    assert outside.effects == []


def test_equal_arguments_are_equal_however_they_are_written(steps: Steps) -> None:
    """D17: key order and defaults do not matter."""
    run = steps.start()
    lease = steps.think(run)
    written = [{"what": "x"}, {"count": 1, "what": "x"}, {"what": "x", "count": 1}]
    for number, raw in enumerate(written):
        propose_call(lease, Proposal("test.book", json.dumps(raw), f"p{number}", 0))
    steps.finish(lease)

    assert len(set(ToolCall.objects.values_list("args_digest", flat=True))) == 1


def test_a_repeat_that_slipped_in_meanwhile_is_refused_at_the_gate(steps: Steps) -> None:
    run = steps.start()
    (call,) = _turn(steps, run, "Tuesday")
    child = steps.start(parent_id=run.pk)  # the same thread
    claim = steps.claim(call)
    (other,) = _turn(steps, child, "Tuesday")
    steps.act(other)

    assert pass_gate(claim) is False
    assert anew(call).reason == "duplicate"


@pytest.mark.parametrize("tool", ["test.note"])
def test_a_read_may_be_repeated(steps: Steps, tool: str) -> None:
    first, again = _turn(steps, steps.start(), "it", "it", tool=tool)

    assert [steps.act(first).state, steps.act(again).state] == ["landed", "landed"]


@pytest.mark.breaks_ledger  # the mark alone: how an undo is carried out is another app's
def test_what_was_undone_may_be_done_again(steps: Steps) -> None:
    run = steps.start()
    (first,) = _turn(steps, run, "Tuesday")
    steps.act(first)
    ToolCall.objects.update(undo_state="undone")

    (again,) = _turn(steps, run, "Tuesday")

    assert again.state == "approved"
