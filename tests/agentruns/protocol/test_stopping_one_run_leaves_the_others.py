"""A9: ten runs of one agent; one is stopped, nine complete."""

from tests.agentruns.steps import Steps, now


def test_stopping_one_run_leaves_the_others(steps: Steps) -> None:
    runs = [steps.running("test.book") for _ in range(10)]
    stopped = runs.pop(4)[0]

    steps.stop(stopped)
    for run, calls in runs:
        steps.act(calls[0])
        steps.turn(run)

    assert now(stopped).status == "stopped_clean"
    assert {now(run).status for run, _calls in runs} == {"completed"}
