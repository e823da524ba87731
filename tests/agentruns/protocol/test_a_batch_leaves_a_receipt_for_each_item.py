"""Protocol §9: between two items a batch can be stopped or paused; what is out, is on record."""

import pytest
from pytest_django.fixtures import Settings

from agentruns.models import Agent, CallItem, Run, ToolCall
from agentruns.protocol import doubt
from agentruns.protocol import items as protocol_items
from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.items import CallItems
from agentruns.protocol.outcome import record_failed
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, kinds, now, pass_time, told
from tests.pausing import Pauses, in_background
from tools.contract import StopSignal
from tools.models import Tool


def batch(steps: Steps, count: int = 5) -> tuple[Run, ToolCall]:
    """A run that has asked for a call with so many items."""
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.batch", count=count)
    assert steps.finish(lease)
    return now(run), anew(call)


def items(call: ToolCall) -> list[str]:
    return list(CallItem.objects.filter(call=call).values_list("key", flat=True))


def out(outside: Outside, call: ToolCall) -> list[int]:
    """The numbers of the items that the outside has, in the order in which it got them."""
    return [int(key.removeprefix(f"{call.request_id}/")) for _tool, key in outside.effects]


def test_each_item_has_its_key_and_its_receipt(steps: Steps, outside: Outside) -> None:
    run, call = batch(steps, 3)

    landed = steps.act(call)

    assert landed.receipt == {
        "items": {f"it {n}": {"id": f"{call.request_id}/{n}"} for n in (1, 2, 3)},
        "of": 3,
    }
    assert landed.response == "All of them are done."
    recorded = events(run, "call.item_landed")
    assert [event.data for event in recorded] == [
        {"key": f"it {n}", "position": n, "of": 3} for n in (1, 2, 3)
    ]
    assert events(run, "call.landed")[0].data.items() >= {"items": 3, "of": 3}.items()
    assert out(outside, call) == [1, 2, 3]


def test_stop_between_two_items(steps: Steps, outside: Outside, pauses: Pauses) -> None:
    """At most one more lands: the one that was under way."""
    run, call = batch(steps)
    second = pauses.hold(run.pk, "call:1:item:2")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        second.wait()
        stop = steps.stop(run)
        assert [entry["id"] for entry in stop.answer["groups"]["in_flight"]] == [call.pk]
        second.release()
        executor.result()

    landed = anew(call)
    assert (landed.state, now(run).status) == ("landed", "stopped_clean")
    assert items(call) == ["it 1", "it 2", "it 3"]
    assert out(outside, call) == [1, 2, 3]
    assert landed.receipt is not None
    assert (len(landed.receipt["items"]), landed.receipt["of"]) == (3, 5)
    assert told(landed) == "3 of 5 done (stopped). Not done: it 4, it 5."


def test_stop_during_the_last_item_finds_all_of_it_done(
    steps: Steps, outside: Outside, pauses: Pauses
) -> None:
    run, call = batch(steps, 2)
    first = pauses.hold(run.pk, "call:1:item:1")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        first.wait()
        steps.stop(run)
        first.release()
        executor.result()

    assert anew(call).response == "All of them are done."
    assert out(outside, call) == [1, 2]


def test_a_pause_between_two_items_and_on(steps: Steps, outside: Outside, pauses: Pauses) -> None:
    run, call = batch(steps)
    second = pauses.hold(run.pk, "call:1:item:2")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        second.wait()
        steps.pause(run)
        second.release()
        executor.result()

    held = anew(call)
    assert (held.state, held.attempts, held.claim_token) == ("approved", 0, "")
    assert events(run, "call.postponed")[0].data == {"reason": "paused"}
    assert out(outside, call) == [1, 2, 3]
    assert steps.act(call).state == "approved"

    steps.unpause(run)
    assert steps.act(call).state == "landed"
    assert out(outside, call) == [1, 2, 3, 4, 5], "it goes on where it was"
    assert kinds(run).count("call.commit_allowed") == 2


@pytest.mark.parametrize("pending", ["discard", "freeze"])
def test_stop_of_a_batch_that_is_paused(
    steps: Steps, outside: Outside, pauses: Pauses, pending: str
) -> None:
    """What is out is done, and is neither dropped nor held back by the stop."""
    run, call = batch(steps)
    first = pauses.hold(run.pk, "call:1:item:1")
    with in_background(execute_call, call.pk, epoch=1) as executor:
        first.wait()
        steps.pause(run)
        first.release()
        executor.result()

    stop = steps.stop(run, pending=pending)

    assert [entry["id"] for entry in stop.answer["groups"]["done"]] == [call.pk]
    assert now(run).status == "stopped_clean"
    assert anew(call).response == "2 of 5 done (stopped). Not done: it 3, it 4, it 5."
    assert out(outside, call) == [1, 2]


def test_an_item_that_is_refused_ends_the_batch_with_what_is_done(
    steps: Steps, outside: Outside
) -> None:
    outside.answers["test.batch"] = ["", "", "refused"]
    run, call = batch(steps)

    landed = steps.act(call)

    assert landed.state == "landed"
    assert landed.response == "2 of 5 done (The outside said no.). Not done: it 3, it 4, it 5."
    assert steps.think(run).turn == 2


def test_nothing_done_is_a_failure(steps: Steps, outside: Outside) -> None:
    outside.answers["test.batch"] = ["refused"]
    _run, call = batch(steps)

    assert steps.act(call).state == "failed"


def test_passing_trouble_is_tried_again_from_there(
    steps: Steps, outside: Outside, settings: Settings
) -> None:
    settings.RETRY_BACKOFF = 0
    outside.answers["test.batch"] = ["", "busy", "", "busy"]
    _run, call = batch(steps, 3)

    assert [steps.act(call).state for _ in range(3)] == ["approved", "approved", "landed"]
    assert out(outside, call) == [1, 2, 3]


def test_a_batch_that_is_not_let_through_again_is_done_as_far_as_it_is(
    steps: Steps, outside: Outside
) -> None:
    outside.answers["test.batch"] = ["", "busy"]
    run, call = batch(steps)
    steps.act(call)
    Tool.objects.filter(name="test.batch").update(enabled=False)
    pass_time(call)

    landed = steps.act(call)

    assert landed.state == "landed"
    assert landed.response.startswith("1 of 5 done (tool_disabled).")
    assert "call.denied" not in kinds(run)


def test_one_consent_is_for_all_of_it(steps: Steps, outside: Outside, settings: Settings) -> None:
    settings.RETRY_BACKOFF = 0
    Tool.objects.filter(name="test.batch").update(approvals_needed=1)
    outside.answers["test.batch"] = ["", "busy"]
    _run, call = batch(steps, 3)
    steps.approve(call)

    assert [steps.act(call).state for _ in range(2)] == ["approved", "landed"]
    assert anew(call).consent_used_at is not None


def test_a_batch_counts_as_one_action_of_the_budget(
    steps: Steps, agent: Agent, outside: Outside, settings: Settings
) -> None:
    settings.RETRY_BACKOFF = 0
    Agent.objects.update(call_limit=1)
    steps.agent = Agent.objects.get(pk=agent.pk)
    outside.answers["test.batch"] = ["", "busy"]
    _run, call = batch(steps, 3)

    assert [steps.act(call).state for _ in range(2)] == ["approved", "landed"]


def test_an_executor_that_was_killed_between_effect_and_receipt(
    steps: Steps, outside: Outside
) -> None:
    """C6: the item is out, its receipt is not on record; the look-up finds it."""
    outside.answers["test.batch"] = ["", "", "lost"]
    run, call = batch(steps)
    assert steps.act(call).state == "in_doubt"
    assert items(call) == ["it 1", "it 2"]

    landed = steps.look_up(call)

    assert landed.state == "landed"
    assert items(call) == ["it 1", "it 2", "it 3"]
    assert landed.response.startswith("3 of 5 done")
    assert steps.think(run).turn == 2
    assert out(outside, call) == [1, 2, 3], "and nothing is sent again"


def test_a_doubt_about_the_next_item_does_not_deny_those_before(
    steps: Steps, outside: Outside
) -> None:
    outside.answers["test.batch"] = ["", "gone"]
    _run, call = batch(steps)
    steps.act(call)

    landed = steps.look_up(call)

    assert (landed.state, items(call)) == ("landed", ["it 1"])


def test_a_doubt_about_the_first_item_can_end_as_nothing_done(
    steps: Steps, outside: Outside
) -> None:
    outside.answers["test.batch"] = ["gone"]
    _run, call = batch(steps)
    steps.act(call)

    assert (steps.look_up(call).state, anew(call).reason) == ("failed", "not_landed")


@pytest.mark.parametrize("answer", ["happened", "did_not_happen"])
def test_a_person_who_answers_cannot_unsay_what_is_on_record(
    steps: Steps, outside: Outside, answer: str
) -> None:
    outside.answers["test.batch"] = ["", "gone"]
    _run, call = batch(steps)
    steps.act(call)

    doubt.answer(call.pk, by=steps.owner, answer=answer, evidence="I looked")

    landed = anew(call)
    assert landed.state == "landed"
    assert landed.receipt is not None
    assert list(landed.receipt["items"]) == ["it 1"]


def test_an_executor_that_is_late_learns_so_at_its_next_item(
    steps: Steps, outside: Outside
) -> None:
    """Its receipt is truth about the world, and is kept; it is not let go on."""
    run, call = batch(steps)
    claim = steps.claim(call)
    pass_gate(claim)
    log = CallItems(call.pk, claim.token)
    log.land("it 1", {})
    pass_time(call)
    steps.sweep()
    assert anew(call).state == "in_doubt"

    with pytest.raises(StopSignal):
        log.land("it 2", {"late": True})

    assert items(call) == ["it 1", "it 2"]
    assert now(run).suspended_reason == "dependency"


def test_an_item_that_comes_after_the_last_word_on_its_batch_is_added_to_it(
    steps: Steps, outside: Outside
) -> None:
    run, call = batch(steps)
    claim = steps.claim(call)
    pass_gate(claim)
    log = CallItems(call.pk, claim.token)
    log.land("it 1", {})
    steps.stop(run)
    pass_time(call)
    steps.sweep()
    doubt.answer(call.pk, by=steps.owner, answer="did_not_happen", evidence="I looked")
    assert anew(call).response.startswith("1 of 5 done")

    with pytest.raises(StopSignal):
        log.land("it 2", {})
    record_failed(claim, "stopped", "")

    assert anew(call).response.startswith("2 of 5 done")
    assert now(run).status == "stopped_clean"


def test_an_item_contradicts_who_said_that_nothing_happened(steps: Steps, outside: Outside) -> None:
    """Truth wins over an answer."""
    run, call = batch(steps)
    claim = steps.claim(call)
    pass_gate(claim)
    pass_time(call)
    steps.sweep()
    doubt.answer(call.pk, by=steps.owner, answer="did_not_happen", evidence="I looked")
    assert anew(call).state == "failed"

    with pytest.raises(StopSignal):
        CallItems(call.pk, claim.token).land("it 1", {})
    record_failed(claim, "stopped", "")

    assert anew(call).state == "landed"
    assert anew(call).contradicted_at is not None
    assert kinds(run).count("call.contradicted") == 1


def test_who_is_held_up_between_two_items_asks_at_the_gate_again(
    steps: Steps, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, call = batch(steps, 3)
    monkeypatch.setattr(protocol_items, "SEND_WINDOW", -1.0)

    assert [steps.act(call).state for _ in range(3)] == ["approved", "approved", "landed"]

    assert out(outside, call) == [1, 2, 3]
    assert kinds(run).count("call.commit_allowed") == 3
    assert anew(call).attempts == 0


def test_each_item_has_its_own_time(steps: Steps, outside: Outside) -> None:
    _run, call = batch(steps)
    claim = steps.claim(call)
    pass_gate(claim)
    before = anew(call).deadline_at
    assert before is not None

    CallItems(call.pk, claim.token).land("it 1", {})

    after = anew(call).deadline_at
    assert after is not None
    assert after > before


def test_items_that_cannot_be_told_apart_are_never_begun(steps: Steps, outside: Outside) -> None:
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.batch", "x" * 300, count=2)
    steps.finish(lease)

    assert (steps.act(call).state, anew(call).reason) == ("failed", "bad_arguments")
    assert outside.attempts == []
