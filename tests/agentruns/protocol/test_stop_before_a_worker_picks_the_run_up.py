"""A10: a Stop in the first moment holds, and the worker that comes later finds nothing to do."""

from agentruns.models import Output, ToolCall
from agentruns.protocol.lease import take_lease
from tests.agentruns.steps import Steps, now


def test_stop_before_a_worker_picks_the_run_up(steps: Steps) -> None:
    run = steps.start()

    stop = steps.stop(run)

    assert stop.answer["phase"] == now(run).status == "stopped_clean"
    assert take_lease(run.pk, epoch=1) is None, "the message that was on its way"
    assert take_lease(run.pk, epoch=2) is None
    assert steps.sweep()["silent"] == 0
    assert not Output.objects.exists()
    assert not ToolCall.objects.exists()


def test_stop_before_the_first_token_leaves_no_text(steps: Steps) -> None:
    """E12: nothing at all reads as incomplete, not as an empty answer."""
    run = steps.start()
    lease = steps.think(run)
    steps.stop(run)

    steps.give_back(lease)

    output = Output.objects.get(run=run)
    assert output.status == "incomplete"
    assert not Output.complete.exists()
