"""L1: the outside system hangs up, and acts some seconds after; its horizon is 5 s here."""

import pytest

from agentruns.models import LedgerEvent, Run, ToolCall
from tests.drill.drills import Drills
from tests.drill.over_http import until

STOPPED = "--scenario tier-compensable --stop-at call:1:gate --fault chat.post_message=late:2"
GOES_ON = "--scenario tier-compensable --fault chat.post_message=late:2"
TOO_LATE = "--scenario tier-compensable --stop-at call:1:gate --fault chat.post_message=late:16"
DRILLS = [STOPPED, GOES_ON, TOO_LATE]

pytestmark = [
    pytest.mark.stack,
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("stack_db"),
]


@pytest.mark.parametrize(
    ("arguments", "status"), [(STOPPED, "stopped_clean"), (GOES_ON, "completed")]
)
def test_what_comes_before_its_horizon_is_found_and_never_called_failed(
    drills: Drills, arguments: str, status: str
) -> None:
    report = drills[arguments].report
    call = ToolCall.objects.get(run=report["run_id"], number=1)
    events = LedgerEvent.objects.filter(call=call).order_by("seq")
    looked = [event.data["found"] for event in events if event.kind == "call.looked_up"]

    assert report["status"] == status
    assert (looked[-1], call.state) == ("Receipt", "landed")
    assert set(looked[:-1]) <= {"NotLanded"}  # where the machine lets it look as soon as it may
    assert not events.filter(kind="call.failed").exists()
    if arguments == STOPPED:
        assert drills[arguments].effects() == {"chat.post_message": 1}


def test_what_comes_after_its_horizon_is_found_all_the_same_and_contradicts(
    drills: Drills,
) -> None:
    """At four times the horizon, with nobody at work but the sweeper and an executor."""
    run_id = drills[TOO_LATE].report["run_id"]
    assert drills[TOO_LATE].report["doubts"][0]["state"] == "failed"

    until(lambda: ToolCall.objects.get(run=run_id, number=1), lambda call: call.state == "landed")

    told = LedgerEvent.objects.get(run=run_id, kind="call.contradicted")
    assert told.data == {"by": "lookup", "was": "not_landed"}
    assert Run.objects.get(pk=run_id).status == "stopped_clean"
