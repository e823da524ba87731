"""Protocol §6: one effect after another, in the order in which the model wrote them."""

from agentruns.protocol.gate import claim_call, pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now
from tests.pausing import at_once


def test_effects_go_out_in_the_models_order(steps: Steps, outside: Outside) -> None:
    _run, calls = steps.running("test.book", "test.post", "test.book")

    for call in reversed(calls):
        steps.act(call)  # the messages come in the wrong order
    for call in calls:
        steps.act(call)

    assert [key for _tool, key in outside.effects] == [call.request_id for call in calls]


def test_messages_that_come_at_once_break_no_order(steps: Steps, outside: Outside) -> None:
    _run, calls = steps.running("test.book", "test.post", "test.book")

    for _ in calls:
        at_once([lambda c=call: steps.act(c) for call in calls])

    assert [key for _tool, key in outside.effects] == [call.request_id for call in calls]


def test_the_next_effect_waits_while_one_is_in_flight_or_in_doubt(
    steps: Steps, outside: Outside
) -> None:
    outside.answers["test.post"] = "lost"
    run, (post, book) = steps.running("test.post", "test.book")
    assert pass_gate(steps.claim(post)) is True
    assert claim_call(book.pk, epoch=1) is None

    run, (post, book) = steps.running("test.post", "test.book")
    assert steps.act(post).state == "in_doubt"
    assert claim_call(book.pk, epoch=1) is None
    assert (now(run).status, now(run).suspended_reason) == ("suspended", "dependency")


def test_reads_may_overlap(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    reads = [steps.propose(lease, "test.note", f"{n}") for n in range(3)]

    assert all(pass_gate(steps.claim(call)) for call in reads)


def test_a_failed_effect_does_not_hold_up_the_next(steps: Steps, outside: Outside) -> None:
    outside.answers["test.post"] = "refused"
    _run, (post, book) = steps.running("test.post", "test.book")

    assert steps.act(post).state == "failed"
    assert steps.act(book).state == "landed"


def test_stop_in_step_2_of_5_leaves_3_to_5_unsent(steps: Steps, outside: Outside) -> None:
    """B1."""
    run, calls = steps.running(*["test.book"] * 5)
    steps.act(calls[0])
    assert pass_gate(steps.claim(calls[1])) is True

    steps.stop(run)
    for call in calls:
        steps.act(call)

    assert [anew(call).state for call in calls] == ["landed", "in_flight", *["voided"] * 3]
    assert outside.attempts == [("test.book", calls[0].request_id)]
