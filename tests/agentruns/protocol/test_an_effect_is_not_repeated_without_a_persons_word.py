"""R35: the same effect again in a thread needs a person."""

import json

import pytest

from agentruns.models import Run, ToolCall
from agentruns.protocol.doubt import answer
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_failed
from agentruns.protocol.turn import Proposal, propose_call
from agentruns.queries import entry
from compensation import saga
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now, pass_time
from tests.pausing import at_once


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


def _in_another_run(steps: Steps, run: Run, what: str = "Tuesday") -> ToolCall:
    """The same, asked for by a run that this one has started, in the same thread."""
    (call,) = _turn(steps, steps.start(parent_id=run.pk), what)
    return call


def test_another_run_of_the_thread_asks_as_well(steps: Steps, outside: Outside) -> None:
    run = steps.start()
    (first,) = _turn(steps, run, "Tuesday")
    steps.act(first)

    again = _in_another_run(steps, run)

    assert (again.state, again.reason) == ("awaiting_approval", "duplicate")
    assert entry(again)["duplicate_of"] == first.pk


def test_another_thread_does_not(steps: Steps, outside: Outside) -> None:
    (first,) = _turn(steps, steps.start(), "Tuesday")
    steps.act(first)

    (other,) = _turn(steps, steps.start(), "Tuesday")

    assert (other.state, entry(other)["duplicate_of"]) == ("approved", "")


def test_what_is_in_doubt_may_have_happened(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = "lost"
    run = steps.start()
    (first,) = _turn(steps, run, "Tuesday")
    assert steps.act(first).state == "in_doubt"

    again = _in_another_run(steps, run)

    assert again.state == "awaiting_approval"
    assert entry(again)["duplicate_of"] == first.pk


def test_a_persons_word_lets_it_through_once(steps: Steps, outside: Outside) -> None:
    run = steps.start()
    (first,) = _turn(steps, run, "Tuesday")
    steps.act(first)
    (again,) = _turn(steps, run, "Tuesday")
    steps.approve(again)
    assert steps.act(again).state == "landed"

    (third,) = _turn(steps, run, "Tuesday")

    assert third.state == "awaiting_approval"
    assert entry(third)["duplicate_of"] == again.pk, "the last one of them"
    assert len(outside.effects) == 2


def test_what_was_truly_undone_may_be_done_again(steps: Steps, outside: Outside) -> None:
    run = steps.start()
    child = steps.start(parent_id=run.pk)
    (first,) = _turn(steps, run, "Tuesday")
    steps.act(first)
    steps.stop(run)
    saga.request_undo(run.pk, by=steps.owner, call_ids=[first.pk])
    while saga.run_next(run.pk):
        pass
    assert now(child).is_active is False
    run = steps.resume(run)

    (again,) = _turn(steps, run, "Tuesday")

    assert steps.act(again).state == "landed"


def test_two_runs_of_a_thread_at_the_gate_at_once_are_one_effect(steps: Steps) -> None:
    """Neither has landed, so neither is the other's double until one of them has passed."""
    for number in range(8):
        parent = steps.start()
        (one,) = _turn(steps, parent, f"day {number}")
        other = _in_another_run(steps, parent, f"day {number}")
        claims = [steps.claim(call) for call in (one, other)]

        passed = at_once([lambda c=claim: pass_gate(c) for claim in claims])

        assert sorted(passed) == [False, True]
        refused = other if passed[0] else one
        assert anew(refused).reason == "duplicate"
        steps.land(claims[passed.index(True)])


def _ended_as_not_found(steps: Steps, call: ToolCall, said: str) -> None:
    """After a doubt it counts as not done: by a look-up, or by a person's word."""
    if said == "not_landed":
        steps.look_up(call)
    else:
        answer(call.pk, by=steps.owner, answer="did_not_happen", evidence="")
    assert (anew(call).state, anew(call).reason) == ("failed", said)


@pytest.mark.parametrize("said", ["not_landed", "answered_not_landed"])
def test_what_was_not_found_after_a_doubt_is_not_repeated_without_a_persons_word(
    steps: Steps, outside: Outside, said: str
) -> None:
    """L1: it may yet turn up, and then there would be two."""
    outside.answers["test.book"] = ["gone"]
    run = steps.start()
    (first,) = _turn(steps, run, "Tuesday")
    _ended_as_not_found(steps, steps.act(first), said)

    (again,) = _turn(steps, run, "Tuesday")

    assert (again.state, again.reason) == ("awaiting_approval", "duplicate")
    assert entry(again)["duplicate_of"] == first.pk
    assert steps.act(again).state == "awaiting_approval"
    assert outside.effects == []
    steps.approve(again)
    assert steps.act(again).state == "landed"


def test_what_is_known_to_have_had_no_effect_may_be_tried_again(
    steps: Steps, outside: Outside
) -> None:
    outside.answers["test.book"] = ["refused"]
    run = steps.start()
    (first,) = _turn(steps, run, "Tuesday")
    assert steps.act(first).reason == "refused"

    (again,) = _turn(steps, run, "Tuesday")

    assert again.state == "approved"


def test_a_doubt_that_ends_meanwhile_is_met_at_the_gate(steps: Steps, outside: Outside) -> None:
    """Of two runs of a thread, one had let the same out before the other asked the gate."""
    run = steps.start()
    (call,) = _turn(steps, run, "Tuesday")
    child = steps.start(parent_id=run.pk)
    claim = steps.claim(call)
    outside.answers["test.book"] = ["gone"]
    (other,) = _turn(steps, child, "Tuesday")
    _ended_as_not_found(steps, steps.act(other), "not_landed")

    assert pass_gate(claim) is False
    assert anew(call).reason == "duplicate"


def test_the_same_in_other_words_is_the_same(steps: Steps, outside: Outside) -> None:
    """Where the tool says what it takes: here it is what, and not how many."""
    run = steps.start()
    lease = steps.think(run)
    first = steps.propose(lease, "test.order", "chairs", count=4)
    steps.finish(lease)
    outside.answers["test.order"] = ["gone"]
    _ended_as_not_found(steps, steps.act(first), "not_landed")

    lease = steps.think(run)
    again = steps.propose(lease, "test.order", "chairs", count=5)
    other = steps.propose(lease, "test.order", "tables", count=4)
    steps.finish(lease)

    assert (anew(again).state, anew(again).reason) == ("awaiting_approval", "duplicate")
    assert anew(other).state == "approved"
