"""Protocol §3, §11: resume is a new epoch under a new grant, and only once nothing is in doubt."""

import pytest
from django.contrib.auth.models import User

from agentruns.errors import BadInput, WrongState
from agentruns.models import StopRequest
from agentruns.planner.history import messages_of
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.lease import give_back_lease, take_lease
from agentruns.protocol.outcome import record_landed
from agentruns.protocol.resume import resume_run
from tests.agentruns.outside import Outside
from tests.agentruns.steps import TEXT, Steps, anew, events, now
from tests.pausing import Pauses, at_once, in_background
from tools.contract import Receipt


def test_a_resumed_run_has_a_new_epoch_and_a_new_grant(steps: Steps, reviewer: User) -> None:
    run, _calls = steps.running("test.book")
    steps.stop(run)
    stopped_in = now(run).epoch

    resume_run(run.pk, by=reviewer)

    assert (now(run).status, now(run).epoch, now(run).ended_at) == ("queued", stopped_in + 1, None)
    (grant,) = run.grants.filter(revoked_at=None)
    assert grant.issued_by == reviewer
    steps.turn(run)
    assert now(run).status == "completed"


def test_nothing_of_before_the_stop_can_write_after_the_resume(steps: Steps) -> None:
    run = steps.start()
    old = steps.think(run)
    steps.stop(run)
    assert give_back_lease(old, TEXT)
    steps.resume(run)
    new = steps.think(run)

    assert not steps.finish(old)
    assert take_lease(run.pk, epoch=old.epoch) is None
    assert len(events(run, "write.rejected_late")) == 1
    assert steps.finish(new)


def test_a_late_outcome_is_recorded_and_moves_nothing(steps: Steps, outside: Outside) -> None:
    run, (call, other) = steps.running("test.book", "test.post")
    claim = steps.claim(call)
    assert pass_gate(claim)
    steps.stop(run)
    assert now(run).status == "draining"
    record_landed(claim, Receipt({}, "Late."))
    steps.resume(run)

    record_landed(claim, Receipt({}, "Later still."))

    assert anew(call).response == "Late."
    assert (anew(other).state, now(run).status) == ("voided", "queued")


def test_a_run_with_a_doubt_is_not_resumed(steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = "lost"
    run, (call,) = steps.running("test.book")
    steps.act(call)
    steps.stop(run)
    assert now(run).status == "stopped_dirty"

    with pytest.raises(WrongState, match="in doubt"):
        steps.resume(run)

    steps.look_up(call)
    steps.resume(run)
    assert now(run).status == "queued"


def test_what_was_held_back_is_let_go_by_the_same_decision(steps: Steps, outside: Outside) -> None:
    run, (first, second) = steps.running("test.book", "test.post")
    steps.stop(run, pending="freeze")
    assert (anew(first).state, anew(second).state) == ("frozen", "frozen")

    steps.resume(run)

    assert now(run).status == "running"
    assert steps.act(second).state == "approved", "still one after the other"
    assert steps.act(first).state == "landed"
    assert steps.act(second).state == "landed"
    assert [tool for tool, _key in outside.effects] == ["test.book", "test.post"]


def test_what_was_held_back_is_dropped_if_that_is_said(steps: Steps) -> None:
    run, (call,) = steps.running("test.book")
    steps.stop(run, pending="freeze")

    steps.resume(run, frozen="void")

    assert (anew(call).state, anew(call).reason) == ("voided", "dropped")
    assert now(run).status == "queued"


def test_what_needs_a_persons_consent_needs_it_anew(steps: Steps) -> None:
    run, (call,) = steps.running("test.send")
    steps.approve(call)
    steps.stop(run, pending="freeze")

    steps.resume(run)

    assert (anew(call).state, anew(call).reason) == ("voided", "needs_consent")


def test_what_an_answer_asked_for_that_was_cut_off_is_never_let_go(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.book")
    steps.stop(run, pending="freeze")
    assert steps.give_back(lease)
    assert anew(call).state == "frozen"

    steps.resume(run)

    assert (anew(call).state, anew(call).reason) == ("voided", "answer_cut")


def test_a_second_stop_is_a_stop_of_its_own(steps: Steps) -> None:
    run, _calls = steps.running("test.book")
    first = steps.stop(run)
    steps.resume(run)
    second = steps.stop(run, reason="no, really")

    assert second.epoch == first.epoch + 2
    assert second.answer["reason"] == "no, really"
    assert StopRequest.objects.get(pk=first.pk).answer == first.answer


def test_the_model_is_told_that_it_was_stopped_and_goes_on(steps: Steps) -> None:
    run, _calls = steps.running("test.book")
    steps.stop(run)
    steps.resume(run)

    *_, last = messages_of(now(run))

    assert [part.part_kind for part in last.parts] == ["tool-return", "user-prompt"]
    assert "stopped by the user" in str(last.parts[0].content)
    steps.turn(run)
    stays = messages_of(now(run))[2]
    assert [part.content for part in stays.parts] == [part.content for part in last.parts]


def test_only_what_was_stopped_is_resumed(steps: Steps) -> None:
    run = steps.start()
    with pytest.raises(WrongState):
        steps.resume(run)
    with pytest.raises(BadInput):
        steps.resume(run, frozen="keep")
    steps.turn(run)
    with pytest.raises(WrongState):
        steps.resume(run)


def test_a_child_is_not_resumed_under_a_parent_that_is_stopped(steps: Steps) -> None:
    parent = steps.start()
    child = steps.start(parent_id=parent.pk)
    steps.stop(parent)
    with pytest.raises(WrongState):
        steps.resume(child)


def test_a_resume_that_is_sent_again_does_not_undo_a_later_stop(steps: Steps) -> None:
    run = steps.start()
    first = steps.stop(run)
    steps.resume(run, epoch=first.epoch)
    steps.stop(run)

    with pytest.raises(WrongState, match="moved on"):
        steps.resume(run, epoch=first.epoch)

    assert now(run).status == "stopped_clean"


def test_two_resumes_at_once_are_one(steps: Steps) -> None:
    run = steps.start()
    steps.stop(run)

    def resume() -> str:
        try:
            return steps.resume(run).status
        except WrongState as error:
            return error.code

    assert sorted(at_once([resume] * 5)) == ["queued", *["wrong_state"] * 4]
    assert run.grants.filter(revoked_at=None).count() == 1


def test_a_stop_in_the_middle_of_a_resume_wins(steps: Steps, pauses: Pauses) -> None:
    run = steps.start()
    steps.stop(run)
    hold = pauses.hold(run.pk, "resume:committed")
    with in_background(steps.resume, run) as resuming:
        hold.wait()
        steps.stop(run)
        hold.release()
        resuming.result()

    assert now(run).status == "stopped_clean"
    assert take_lease(run.pk, epoch=now(run).epoch) is None
