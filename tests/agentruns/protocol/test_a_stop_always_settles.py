"""A4: no run stays at work for ever after Stop, whatever its tools, its drivers and people do."""

import pytest

from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_landed
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now, pass_time
from tests.pausing import Pauses, in_background
from tools import registry
from tools.contract import Receipt


def _raises(*_what: object) -> None:
    raise OSError("The draft cannot be dropped.")


def _ignores(*_what: object) -> None:
    pass


HOOKS = {"raises": _raises, "does nothing": _ignores, "is missing": None}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_tool_whose_stop_hook_is_of_no_use(
    steps: Steps, outside: Outside, pauses: Pauses, monkeypatch: pytest.MonkeyPatch, hook: str
) -> None:
    """Its draft is left over; the run is stopped all the same."""
    tool = registry.get("test.draft")
    assert tool is not None
    monkeypatch.setattr(tool.impl, "void", HOOKS[hook], raising=False)
    run, (call,) = steps.running("test.draft")
    prepared = pauses.hold(run.pk, "call:1:prepared")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        prepared.wait()
        assert steps.stop(run).answer["phase"] == "stopped_clean"
        prepared.release()
        executor.result()

    assert (now(run).status, anew(call).state) == ("stopped_clean", "voided")
    assert outside.attempts == []


def test_a_tool_that_never_comes_back(steps: Steps, pauses: Pauses) -> None:
    """It cannot be interrupted. The drain ends without it, and what it did is in doubt."""
    run, (call,) = steps.running("test.post")
    sent = pauses.hold(run.pk, "call:1:sent")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        sent.wait()
        assert steps.stop(run).answer["waits_for"]["calls"] == [call.pk]
        pass_time(now(run))
        steps.sweep()
        assert (now(run).status, anew(call).state) == ("stopped_dirty", "in_doubt")
        sent.release()  # it does come back, after all: with the truth
        executor.result()

    assert (now(run).status, anew(call).state) == ("stopped_clean", "landed")


def test_while_an_approval_waits(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.send")
    assert (now(run).status, anew(call).state) == ("suspended", "awaiting_approval")

    stop = steps.stop(run)

    assert stop.answer["phase"] == now(run).status == "stopped_clean"
    assert (anew(call).state, anew(call).reason) == ("voided", "approval_withdrawn")
    assert outside.attempts == []


def test_while_one_call_is_in_flight_and_the_next_waits_for_approval(steps: Steps) -> None:
    run, (book, send) = steps.running("test.book", "test.send")
    claim = steps.claim(book)
    assert pass_gate(claim)

    steps.stop(run)
    assert (now(run).status, anew(send).state) == ("draining", "voided")
    record_landed(claim, Receipt({}, "Booked."))

    assert now(run).status == "stopped_clean"


@pytest.mark.parametrize("pending", ["discard", "freeze"])
def test_while_a_driver_streams_and_a_read_is_under_way_and_nobody_answers(
    steps: Steps, pending: str
) -> None:
    run = steps.start()
    lease = steps.think(run)
    read = steps.propose(lease, "test.note")
    effect = steps.propose(lease, "test.book")
    assert pass_gate(steps.claim(read))

    steps.stop(run, pending=pending)
    assert now(run).status == "cancel_requested"
    pass_time(now(run))  # the lease is not given back, the read does not report
    steps.sweep()

    assert now(run).status == "stopped_clean"
    left = "voided" if pending == "discard" else "frozen"
    assert [anew(call).state for call in (read, effect)] == ["failed", left]
