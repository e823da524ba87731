"""Protocol §9, on real workers: a call with many items says how far it has come, and stays there.

At `call:1:item:1` the first item is on record and the second is on its way, as the first one is
at the gate: Stop finds it in flight.
"""

import pytest

from agentruns.models import ToolCall
from tests.drill.drills import Drills

STOPPED_AT_THE_GATE = "--scenario announce --stop-at call:1:gate"
STOPPED = "--scenario announce --stop-at call:1:item:1"
PAUSED = "--scenario announce --pause-at call:1:item:1"
KILLED = "--scenario announce --kill-at call:1:item:1"
DRILLS = [STOPPED_AT_THE_GATE, STOPPED, PAUSED, KILLED]

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180), pytest.mark.usefixtures("stack_db")]


@pytest.mark.parametrize(
    ("arguments", "effects", "said"),
    [
        (STOPPED_AT_THE_GATE, 1, "1 of 3 done (stopped). Not done: #general, #finance."),
        (STOPPED, 2, "2 of 3 done (stopped). Not done: #finance."),
    ],
)
def test_stopped_it_is_done_as_far_as_it_was_on_its_way(
    drills: Drills, arguments: str, effects: int, said: str
) -> None:
    report = drills[arguments].report
    assert report["status"] == "stopped_clean"
    assert drills[arguments].effects() == {"chat.announce": effects}
    assert _first(report["run_id"]).response == said


def test_paused_it_goes_on_where_it_was(drills: Drills) -> None:
    report = drills[PAUSED].report
    assert report["status"] == "completed"
    assert drills[PAUSED].effects() == {"chat.announce": 5}
    assert _first(report["run_id"]).events.filter(kind="call.postponed").count() == 1


def test_whoever_is_killed_between_two_items_leaves_what_is_on_record(drills: Drills) -> None:
    report = drills[KILLED].report
    assert report["status"] == "completed"
    assert drills[KILLED].effects() == {"chat.announce": 3}
    said = "1 of 3 done (not_landed). Not done: #general, #finance."
    assert _first(report["run_id"]).response == said


def _first(run_id: str) -> ToolCall:
    return ToolCall.objects.get(run=run_id, number=1)
