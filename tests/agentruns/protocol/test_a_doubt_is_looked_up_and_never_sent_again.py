"""Protocol §8: look-up with growing pauses, a cap, then a person; C7."""

from datetime import timedelta

import pytest

from agentruns.errors import BadInput, WrongState
from agentruns.models import ToolCall
from agentruns.protocol.doubt import LOOKUP_LIMIT, answer, ask_again, begin_lookup, record_lookup
from agentruns.protocol.execute import look_up_call
from agentruns.protocol.gate import Claim
from agentruns.protocol.ledger import clock, person
from agentruns.protocol.outcome import record_landed
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, now
from tools.contract import Receipt


def _doubtful(steps: Steps, outside: Outside, what_happened: str) -> ToolCall:
    outside.answers["test.book"] = what_happened
    run, (call,) = steps.running("test.book")
    call = steps.act(call)
    steps.stop(run)
    assert now(run).status == "stopped_dirty"
    return call


def test_what_did_happen_is_found_and_the_run_is_clean(steps: Steps, outside: Outside) -> None:
    call = _doubtful(steps, outside, "lost")

    call = steps.look_up(call)

    assert (call.state, call.receipt) == ("landed", {"key": call.request_id})
    assert now(call.run).status == "stopped_clean"
    assert len(outside.attempts) == 1


def test_what_did_not_happen_is_failed_and_the_run_is_clean(steps: Steps, outside: Outside) -> None:
    call = _doubtful(steps, outside, "gone")

    call = steps.look_up(call)

    assert (call.state, call.reason) == ("failed", "not_landed")
    assert now(call.run).status == "stopped_clean"
    assert len(outside.attempts) == 1


def test_a_look_up_that_fails_decides_nothing_and_comes_again_with_growing_pauses(
    steps: Steps, outside: Outside
) -> None:
    call = _doubtful(steps, outside, "lost")
    outside.is_dark = True
    pauses = []

    for _ in range(LOOKUP_LIMIT - 1):
        call = steps.look_up(call)
        last = events(call.run, "call.looked_up")[-1]
        assert (call.state, last.data) == ("in_doubt", {"found": "Unknown"})
        assert call.next_lookup_at is not None
        assert last.at is not None
        pauses.append(call.next_lookup_at - last.at)
    last_try = steps.look_up(call)

    assert [round(pause / timedelta(seconds=1)) for pause in pauses] == [2, 4, 8, 16, 32]
    assert (last_try.state, last_try.next_lookup_at) == ("in_doubt", None), "a person has to say"
    assert now(call.run).status == "stopped_dirty"
    assert len(outside.attempts) == 1


def test_a_look_up_is_not_begun_before_its_time_nor_twice(steps: Steps, outside: Outside) -> None:
    call = _doubtful(steps, outside, "lost")

    look_up_call(call.pk)
    assert outside.lookups == []

    ask_again(call.pk)
    assert begin_lookup(call.pk) is not None
    assert begin_lookup(call.pk) is None


def test_the_sweeper_finds_look_ups_that_are_due(steps: Steps, outside: Outside) -> None:
    call = _doubtful(steps, outside, "lost")
    assert steps.sweep()["lookups"] == 0

    ask_again(call.pk)

    assert steps.sweep()["lookups"] == 1


def test_a_tool_that_cannot_look_up_waits_for_a_person(steps: Steps, outside: Outside) -> None:
    outside.answers["test.post"] = "lost"
    run, (call,) = steps.running("test.post")

    call = steps.act(call)

    assert (call.state, call.next_lookup_at) == ("in_doubt", None)
    answer(call.pk, by=steps.owner, answer="happened", evidence="I saw it in the channel.")
    assert anew(call).state == "landed"
    assert anew(call).receipt == {
        "answered_by": person(steps.owner),
        "answer": "happened",
        "evidence": "I saw it in the channel.",
    }
    assert now(run).status == "running"


@pytest.mark.parametrize(
    ("said", "state", "status"),
    [
        ("happened", "landed", "stopped_clean"),
        ("did_not_happen", "failed", "stopped_clean"),
        ("cannot_tell", "in_doubt", "stopped_dirty"),
    ],
)
def test_a_persons_answer_is_kept_with_their_name(
    steps: Steps, outside: Outside, said: str, state: str, status: str
) -> None:
    call = _doubtful(steps, outside, "gone")

    answer(call.pk, by=steps.owner, answer=said, evidence="Asked them.")

    assert (anew(call).state, now(call.run).status) == (state, status)
    (event,) = events(call.run, "call.answered")
    assert (event.actor, event.data["evidence"]) == (person(steps.owner), "Asked them.")


def test_truth_wins_over_an_answer(
    steps: Steps, outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    """I7: the only way out of a terminal state, marked, on record, and with an alarm."""
    call = _doubtful(steps, outside, "lost")
    answer(call.pk, by=steps.owner, answer="did_not_happen", evidence="I asked them.")
    assert anew(call).state == "failed"

    record_lookup(call.pk, Receipt({"key": call.request_id}, "It is there."), begun_at=clock().now)

    assert (anew(call).state, anew(call).reason, anew(call).detail) == ("landed", "", "")
    assert anew(call).contradicted_at is not None
    (event,) = events(call.run, "call.contradicted")
    assert event.data == {"by": "lookup", "was": "answered_not_landed"}
    assert "call.contradicted" in caplog.text
    assert now(call.run).status == "stopped_clean"


def test_what_never_passed_the_gate_is_not_contradicted(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    steps.stop(run)

    record_lookup(call.pk, Receipt({}, "?"), begun_at=clock().now)

    assert anew(call).state == "voided"
    assert events(run, "outcome.repeated")


def test_only_a_doubt_is_answered_or_looked_up(steps: Steps) -> None:
    _run, (call,) = steps.running("test.book")

    with pytest.raises(BadInput):
        answer(call.pk, by=steps.owner, answer="perhaps", evidence="")
    with pytest.raises(WrongState):
        answer(call.pk, by=steps.owner, answer="happened", evidence="")
    with pytest.raises(WrongState):
        ask_again(call.pk)


def test_a_claim_reports_after_a_persons_answer(steps: Steps, outside: Outside) -> None:
    """The executor was only slow: its receipt contradicts the person, who said no."""
    call = _doubtful(steps, outside, "gone")
    answer(call.pk, by=steps.owner, answer="did_not_happen", evidence="")

    record_landed(Claim(call.pk, call.claim_token, 1.0), Receipt({"key": "k"}, "Late."))

    assert anew(call).state == "landed"
    assert anew(call).contradicted_at is not None
