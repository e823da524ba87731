"""B16, E14: reads go out in mid-stream, effects only once the answer ended cleanly."""

import pytest

from agentruns.models import Output, ToolCall
from agentruns.protocol.turn import Proposal, break_turn, propose_call
from tests.agentruns.outside import Outside
from tests.agentruns.steps import TEXT, Steps, anew, now
from tools.models import Tool


def test_an_effect_waits_for_the_clean_end_of_the_answer(steps: Steps, outside: Outside) -> None:
    run = steps.start()
    lease = steps.think(run)
    read, effect = (steps.propose(lease, tool) for tool in ("test.note", "test.book"))

    assert steps.act(read).state == "landed"
    assert steps.act(effect).state == "buffered"
    assert outside.attempts == [("test.note", read.request_id)]

    steps.finish(lease)
    assert steps.act(effect).state == "landed"


@pytest.mark.parametrize(
    "code", ["answer_length", "answer_content_filter", "answer_broken", "provider_failed"]
)
def test_an_answer_cut_off_asks_for_nothing(steps: Steps, outside: Outside, code: str) -> None:
    run = steps.start()
    lease = steps.think(run)
    read, *effects = (
        steps.propose(lease, tool) for tool in ("test.note", "test.book", "test.send")
    )

    assert break_turn(lease, TEXT, code, "cut") is True

    assert [(anew(c).state, anew(c).reason) for c in effects] == [("voided", "answer_cut")] * 2
    assert anew(read).state == "voided"
    for call in (read, *effects):
        steps.act(call)
    assert outside.attempts == []
    assert (now(run).status, now(run).failure) == ("failed", code)
    assert not Output.complete.exists()


def test_stop_in_mid_answer_drops_what_it_had_asked_for(steps: Steps, outside: Outside) -> None:
    """B16."""
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.book")

    stop = steps.stop(run)
    late = Proposal("test.book", '{"what": "late"}', "p2", 0)
    assert propose_call(lease, late) is None
    steps.give_back(lease)

    assert (anew(call).state, anew(call).reason) == ("voided", "stopped")
    assert stop.answer["waits_for"]["model"] is True
    assert now(run).status == "stopped_clean"
    assert ToolCall.objects.count() == 1


def test_a_read_waits_too_where_an_admin_wants_it(steps: Steps) -> None:
    Tool.objects.filter(name="test.note").update(dispatch="speculative")
    run = steps.start()

    call = steps.propose(steps.think(run), "test.note")

    assert (call.state, call.is_eager) == ("buffered", False)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ('{"what": 5, "count": "many"}', "what"),
        ("{}", "what: Field required"),
        ('{"what": "half', "EOF"),
        ("", "Field required"),
        ("null", ""),
    ],
)
def test_arguments_that_do_not_fit_fail_before_the_gate(
    steps: Steps, outside: Outside, raw: str, reason: str
) -> None:
    run = steps.start()
    lease = steps.think(run)

    call = propose_call(lease, Proposal("test.book", raw, "p1", 0))
    steps.finish(lease)

    assert call is not None
    assert (anew(call).state, anew(call).reason) == ("failed", "bad_arguments")
    assert reason in anew(call).detail
    assert steps.act(call).gate_passed_at is None
    assert outside.attempts == []
    assert steps.think(run).turn == 2, "the model is told, and goes on"


def test_an_unknown_tool_is_denied(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)

    call = steps.propose(lease, "test.unknown")
    steps.finish(lease)

    assert (anew(call).state, anew(call).reason) == ("denied", "unknown_tool")
    assert now(run).status == "running"
