"""R22: prepare, check again, commit; a draft that may not go out is dropped."""

from collections.abc import Iterator

import pytest

from agentruns.protocol import execute
from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import keep_draft
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, kinds, now, pass_time
from tests.pausing import Hold, in_background
from tools import registry
from tools.contract import Draft


@pytest.fixture
def slow_prepare(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hold]:
    """The tool's own slow work: `prepare` takes as long as the test says."""
    hold = Hold()
    drafted = registry.get("test.draft")
    assert drafted is not None
    prepare = drafted.impl.prepare  # type: ignore[attr-defined]

    def slowly(*args: object) -> Draft:
        draft: Draft = prepare(*args)
        hold.is_reached.set()
        assert hold.is_released.wait(20)
        return draft

    monkeypatch.setattr(drafted.impl, "prepare", slowly, raising=False)
    yield hold
    hold.release()


def test_a_draft_is_kept_before_it_is_sent(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.draft")

    call = steps.act(call)

    assert (call.state, call.draft) == ("landed", {"key": call.request_id})
    assert kinds(run)[-3:] == ["call.prepared", "call.commit_allowed", "call.landed"]
    assert outside.voided == set()


def test_stop_while_it_is_prepared_drops_the_draft(
    steps: Steps, outside: Outside, slow_prepare: Hold
) -> None:
    run, (call,) = steps.running("test.draft")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        slow_prepare.wait()
        steps.stop(run)
        slow_prepare.release()
        executor.result()

    assert anew(call).state == "voided"
    assert outside.voided == {call.request_id}
    assert outside.attempts == []
    assert now(run).status == "stopped_clean"


def test_a_draft_of_a_worker_that_died_is_sent_by_the_next(steps: Steps, outside: Outside) -> None:
    _run, (call,) = steps.running("test.draft")
    assert keep_draft(steps.claim(call), Draft({"key": call.request_id}))
    pass_time(call)

    assert steps.act(call).state == "landed"

    assert outside.drafts == set(), "it was not drafted a second time"
    assert outside.voided == set()


def test_an_executor_held_up_after_the_gate_sends_nothing(
    steps: Steps, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its call may have been looked up since, and found not to have happened."""
    monkeypatch.setattr(execute, "SEND_WINDOW", -1.0)
    _, (call,) = steps.running("test.draft")

    call = steps.act(call)

    assert (call.state, call.reason) == ("failed", "too_late")
    assert call.gate_passed_at is not None
    assert outside.attempts == []
    assert outside.voided == {call.request_id}
