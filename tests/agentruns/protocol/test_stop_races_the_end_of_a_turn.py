"""A11: Stop and the clean end of the answer at the same moment: one of them won, on record."""

from agentruns.models import Output
from agentruns.protocol.turn import finish_turn
from tests.agentruns.steps import TEXT, Steps, anew, kinds, now
from tests.pausing import Pauses, at_once, in_background


def test_stop_between_the_last_token_and_the_end_cuts_the_turn(
    steps: Steps, pauses: Pauses
) -> None:
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.book")
    committed = pauses.hold(run.pk, "stop:committed")
    with in_background(steps.stop, run) as stopping:
        committed.wait()
        assert finish_turn(lease, TEXT, "stop") is False
        steps.give_back(lease)
        committed.release()
        stopping.result()

    assert Output.objects.get().status == "incomplete"
    assert anew(call).state == "voided"
    assert now(run).status == "stopped_clean"


def test_the_end_of_the_run_first_and_stop_is_told_so(steps: Steps, pauses: Pauses) -> None:
    run = steps.start()
    lease = steps.think(run)
    begun = pauses.hold(run.pk, "stop:begin")
    with in_background(steps.stop, run) as stopping:
        begun.wait()
        assert finish_turn(lease, TEXT, "stop") is True
        begun.release()
        stop = stopping.result()

    assert stop.answer["won_by"] == "completion"
    assert now(run).status == "completed"


def test_both_at_the_same_moment_have_one_order(steps: Steps) -> None:
    for _ in range(8):
        run = steps.start()
        lease = steps.think(run)
        call = steps.propose(lease, "test.book")

        finished, _stop = at_once(
            [lambda x=lease: finish_turn(x, TEXT, "stop"), lambda r=run: steps.stop(r)]
        )
        if not finished:
            steps.give_back(lease)

        assert anew(call).state == "voided"
        assert now(run).status == "stopped_clean"
        assert ("output.completed" in kinds(run)) is finished
