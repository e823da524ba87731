"""Protocol §8, C7, L1: “it did not happen” is an answer only when nothing can be under way any
more, and what comes after that all the same is found, and told with an alarm.
`python -m tests.model --break lookup-believed-too-soon` shows what would happen else.
"""

from datetime import datetime, timedelta

import pytest
from django.conf import LazySettings

from agentruns.models import ToolCall
from agentruns.protocol.doubt import (
    LATE_LOOKUPS,
    LONGEST_PAUSE,
    answer,
    ask_again,
    begin_lookup,
    record_lookup,
)
from agentruns.protocol.execute import context_of, look_up_call
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.ledger import clock
from tests.agentruns.outside import HORIZON, Outside
from tests.agentruns.outside import outside as world
from tests.agentruns.steps import Steps, anew, events, now, pass_time
from tools.contract import NotLanded, Receipt

HOUR = timedelta(hours=1)


@pytest.fixture
def call(steps: Steps) -> ToolCall:
    """Let through, then stopped; the drain's time is over, and the call's own is not."""
    run, (call,) = steps.running("test.book")
    assert pass_gate(steps.claim(call))
    steps.stop(run)
    pass_time(now(run))
    steps.sweep()
    assert (anew(call).state, anew(call).reason) == ("in_doubt", "no_report")
    return anew(call)


@pytest.fixture
def slow(steps: Steps, outside: Outside, settings: LazySettings) -> ToolCall:
    """A call whose answer did not come, of a run that was stopped; the outside may act on it for
    an hour.
    """
    settings.LOOKUP_HORIZON_SCALE = HOUR.total_seconds() / HORIZON
    outside.answers["test.book"] = "gone"
    run, (call,) = steps.running("test.book")
    call = steps.act(call)
    steps.stop(run)
    return call


def _looked_up_after(call: ToolCall, span: timedelta) -> ToolCall:
    """As it is after a look-up so long after the doubt began."""
    call = anew(call)
    assert call.doubted_at is not None
    since = clock().now - call.doubted_at
    pass_time(call, hours=(span - since) / HOUR)
    ToolCall.objects.filter(pk=call.pk).update(next_lookup_at=clock().now)
    look_up_call(call.pk)
    return anew(call)


def _acts(call: ToolCall) -> None:
    """The outside, at last."""
    world.answers.clear()
    world.act("test.book", context_of(call))


# --- until its horizon is over --------------------------------------------------------------------
def test_the_drain_may_be_over_while_the_executor_still_sends(
    steps: Steps, outside: Outside, call: ToolCall
) -> None:
    """Where nobody reported, the horizon begins when the call's own time is over."""
    assert call.deadline_at is not None
    assert call.horizon_at == call.deadline_at + timedelta(seconds=HORIZON)
    ask_again(call.pk)

    look_up_call(call.pk)

    assert (anew(call).state, anew(call).last_lookup) == ("in_doubt", "not_found")
    outside.act("test.book", context_of(call))  # it arrives, and the executor dies
    assert steps.look_up(call).state == "landed"
    assert now(call.run).status == "stopped_clean"


def test_an_answer_is_as_old_as_its_question(call: ToolCall) -> None:
    ask_again(call.pk)
    asked = begin_lookup(call.pk)
    assert asked is not None
    assert asked.looked_up_at is not None
    pass_time(call)
    ask_again(call.pk)
    assert begin_lookup(call.pk) is not None  # another one, whose answer is yet to come

    # (Time that has passed is time that the row has gone back.)
    record_lookup(call.pk, NotLanded(), begun_at=asked.looked_up_at - HOUR)

    assert anew(call).state == "in_doubt"


def test_once_all_is_settled_it_is_believed(steps: Steps, call: ToolCall) -> None:
    assert steps.look_up(call).state == "failed"
    assert now(call.run).status == "stopped_clean"
    (failed,) = events(call.run, "call.failed")
    assert failed.at is not None
    assert datetime.fromisoformat(failed.data["horizon_at"]) <= failed.at


def test_what_was_not_found_so_far_is_in_doubt_and_its_run_not_clean(slow: ToolCall) -> None:
    """L1: the outside acts at 14 s, and is believed to have done nothing at no time."""
    early = _looked_up_after(slow, timedelta(seconds=14))
    assert (early.state, early.last_lookup) == ("in_doubt", "not_found")
    assert now(early.run).status == "stopped_dirty"

    _acts(slow)

    found = _looked_up_after(slow, timedelta(seconds=28))
    assert (found.state, found.last_lookup, found.contradicted_at) == ("landed", "found", None)
    assert now(found.run).status == "stopped_clean"


def test_the_pauses_grow_up_to_the_horizon_and_no_look_up_is_left_out_at_its_end(
    slow: ToolCall,
) -> None:
    assert slow.doubted_at is not None
    pauses, at = [], timedelta(seconds=1)
    while at < HOUR - timedelta(seconds=1):
        looked = _looked_up_after(slow, at)
        assert looked.state == "in_doubt"
        assert looked.next_lookup_at is not None
        assert looked.looked_up_at is not None
        pauses.append(looked.next_lookup_at - looked.looked_up_at)
        at += pauses[-1]

    assert pauses[:4] == [timedelta(seconds=2**n) for n in range(1, 5)]
    assert max(pauses) == timedelta(seconds=LONGEST_PAUSE)
    assert anew(slow).next_lookup_at == anew(slow).horizon_at
    assert _looked_up_after(slow, HOUR + timedelta(seconds=1)).reason == "not_landed"


def test_what_cannot_be_asked_then_stays_in_doubt(slow: ToolCall, outside: Outside) -> None:
    outside.is_dark = True

    late = _looked_up_after(slow, HOUR * 1.1)

    assert (late.state, late.last_lookup) == ("in_doubt", "no_answer")
    assert late.next_lookup_at is not None


# --- and after that -------------------------------------------------------------------------------
@pytest.mark.parametrize("horizons", LATE_LOOKUPS)
def test_what_turns_up_after_the_end_is_found_and_told_with_an_alarm(
    slow: ToolCall, horizons: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert _looked_up_after(slow, HOUR * 1.1).state == "failed"
    assert now(slow.run).status == "stopped_clean"
    for n in LATE_LOOKUPS:
        assert anew(slow).state == "failed"
        if n == horizons:
            _acts(slow)
        _looked_up_after(slow, HOUR * (n + 0.1))
        if n == horizons:
            break

    assert (anew(slow).state, anew(slow).next_lookup_at) == ("landed", None)
    (event,) = events(slow.run, "call.contradicted")
    assert event.data == {"by": "lookup", "was": "not_landed"}
    assert "call.contradicted" in caplog.text


def test_the_late_look_ups_are_few_and_come_from_the_database(slow: ToolCall, steps: Steps) -> None:
    failed = _looked_up_after(slow, HOUR * 1.1)
    due = []
    while failed.next_lookup_at is not None:
        assert failed.doubted_at is not None
        due.append(round((failed.next_lookup_at - failed.doubted_at) / HOUR, 3))
        assert steps.sweep()["lookups"] == 0
        pass_time(failed, hours=(failed.next_lookup_at - clock().now) / HOUR + 0.01)
        assert steps.sweep()["lookups"] == 1
        look_up_call(failed.pk)
        failed = anew(failed)
    assert due == list(LATE_LOOKUPS)
    assert (failed.state, steps.sweep()["lookups"]) == ("failed", 0)


def test_an_executor_that_reports_last_of_all_ends_the_look_ups(slow: ToolCall) -> None:
    failed = _looked_up_after(slow, HOUR * 1.1)
    assert failed.looked_up_at is not None

    record_lookup(slow.pk, Receipt({"key": "k"}, "There."), begun_at=failed.looked_up_at)

    assert (anew(slow).state, anew(slow).next_lookup_at) == ("landed", None)


def test_what_a_person_says_did_not_happen_is_looked_for_as_before(
    slow: ToolCall, steps: Steps
) -> None:
    due = anew(slow).next_lookup_at
    answer(slow.pk, by=steps.owner, answer="did_not_happen", evidence="")
    said = anew(slow)
    assert (said.state, said.next_lookup_at, now(said.run).status) == (
        "failed",
        due,
        "stopped_clean",
    )

    early = _looked_up_after(slow, timedelta(seconds=14))
    assert early.next_lookup_at is not None
    _acts(slow)

    assert _looked_up_after(slow, timedelta(seconds=28)).state == "landed"
    (event,) = events(slow.run, "call.contradicted")
    assert event.data["was"] == "answered_not_landed"


def test_where_the_outside_can_promise_it_counts_at_once(
    slow: ToolCall, settings: LazySettings, steps: Steps
) -> None:
    settings.LOOKUP_HORIZON_SCALE = 0.0
    _run, (call,) = steps.running("test.book")
    call = steps.act(call)

    failed = _looked_up_after(call, timedelta(seconds=1))

    assert (failed.state, failed.next_lookup_at) == ("failed", None)
