"""Protocol §9: a call that cannot be interrupted has its own time, and Stop says that it waits."""

from agentruns.protocol.gate import pass_gate
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now, pass_time


def test_the_drain_deadline_does_not_cut_it(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.migrate")
    claim = steps.claim(call)
    assert pass_gate(claim)

    stop = steps.stop(run)
    assert stop.answer["waits_for"]["after"] == [anew(call).summary]
    pass_time(now(run))
    steps.sweep()

    assert (anew(call).state, now(run).status) == ("in_flight", "draining")
    steps.land(claim)
    assert (anew(call).state, now(run).status) == ("landed", "stopped_clean")


def test_its_own_deadline_does(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.migrate")
    assert pass_gate(steps.claim(call))
    steps.stop(run)
    pass_time(call)

    steps.sweep()

    assert (anew(call).state, now(run).status) == ("in_doubt", "stopped_dirty")


def test_what_has_not_begun_is_dropped_like_anything_else(steps: Steps, outside: Outside) -> None:
    run, (call,) = steps.running("test.migrate")

    stop = steps.stop(run)

    assert (anew(call).state, now(run).status) == ("voided", "stopped_clean")
    assert stop.answer["waits_for"]["after"] == []
