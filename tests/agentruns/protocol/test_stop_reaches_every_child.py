"""B9, R12: a stop of the parent stops its children; none is born running afterwards."""

from agentruns.models import Run, StopRequest
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.turn import break_turn
from tests.agentruns.steps import TEXT, Steps, anew, now
from tests.pausing import at_once


def test_stop_reaches_every_child(steps: Steps) -> None:
    parent, _calls = steps.running("test.send")
    child = steps.start(parent_id=parent.pk)
    grandchild = steps.start(parent_id=child.pk)
    (call,) = steps.turn(grandchild, "test.book")
    done = steps.start(parent_id=parent.pk)
    steps.turn(done)

    steps.stop(parent, reason="enough", pending="freeze")

    assert {now(run).status for run in (parent, child, grandchild)} == {"stopped_clean"}
    assert anew(call).state == "frozen"
    assert now(done).status == "completed", "it had ended by itself"
    assert {(stop.signal, stop.reason) for stop in StopRequest.objects.all()} == {
        ("user", "enough")
    }


def test_a_child_in_flight_drains_by_itself(steps: Steps) -> None:
    parent, _calls = steps.running("test.send")
    child = steps.start(parent_id=parent.pk)
    (call,) = steps.turn(child, "test.book")
    pass_gate(steps.claim(call))

    steps.stop(parent)

    assert (now(parent).status, now(child).status) == ("stopped_clean", "draining")


def test_a_child_that_is_born_later_is_born_stopped(steps: Steps) -> None:
    parent = steps.start()
    steps.stop(parent)

    child = steps.start(parent_id=parent.pk)

    assert now(child).status == "stopped_clean"
    assert StopRequest.objects.get(run=child).signal == "dependency"
    assert not child.grants.filter(revoked_at=None).exists()


def test_stop_of_a_child_leaves_its_parent(steps: Steps) -> None:
    parent, _calls = steps.running("test.send")
    child = steps.start(parent_id=parent.pk)

    steps.stop(child)

    assert now(child).status == "stopped_clean"
    assert now(parent).status == "suspended"


def test_children_that_are_born_while_their_parent_is_stopped(steps: Steps) -> None:
    parent = steps.start()
    births = [lambda: steps.start(parent_id=parent.pk).pk for _ in range(6)]

    at_once([*births, lambda: steps.stop(parent).run_id])

    statuses = {run.status for run in Run.objects.exclude(pk=parent.pk)}
    assert statuses == {"stopped_clean"}


def test_stop_of_a_run_that_has_ended_stops_what_it_started(steps: Steps) -> None:
    parent = steps.start()
    child = steps.start(parent_id=parent.pk)
    steps.turn(parent)
    assert now(parent).status == "completed"

    stop = steps.stop(parent)

    assert (stop.won_by, now(child).status) == ("completion", "stopped_clean")
    assert stop.answer["children"] == [{"run_id": child.pk, "status": "stopped_clean"}]


def test_what_a_run_started_stops_when_it_fails(steps: Steps) -> None:
    parent = steps.start()
    child = steps.start(parent_id=parent.pk)
    break_turn(steps.think(parent), TEXT, "provider_failed", "")

    steps.sweep()

    assert now(child).status == "stopped_clean"
    assert StopRequest.objects.get(run=child).signal == "dependency"
