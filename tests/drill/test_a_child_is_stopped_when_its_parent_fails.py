"""R05: the sweeper comes to what a failed run has started, and stops it."""

import pytest

from agentruns.models import LedgerEvent, Run
from tests.drill.drills import Drills

CHILD = "--scenario tier-reversible --parent cut-connection"
SWEPT = f"{CHILD} --twice-at sweep:orphans"
SWEEPER_KILLED = f"{CHILD} --kill-at sweep:orphans"
STOPPED_BEFORE = f"{CHILD} --stop-at sweep:orphans --pending freeze"
NEVER_FAILS = "--scenario tier-read-only --parent report"
DRILLS = [SWEPT, SWEEPER_KILLED, STOPPED_BEFORE, NEVER_FAILS]

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]


@pytest.mark.parametrize("arguments", [SWEPT, SWEEPER_KILLED, STOPPED_BEFORE])
def test_it_is_stopped_and_has_done_nothing(drills: Drills, arguments: str) -> None:
    report = drills[arguments].report
    parent = report["parent"]
    assert (parent["scenario"], parent["status"]) == ("cut-connection", "failed")
    assert (report["status"], report["stop"]["epoch"]) == ("stopped_clean", 2)
    assert drills[arguments].effects() == {}


@pytest.mark.usefixtures("stack_db")
@pytest.mark.parametrize("arguments", [SWEPT, SWEEPER_KILLED])
def test_its_stop_names_the_parent(drills: Drills, arguments: str) -> None:
    report = drills[arguments].report
    asked = LedgerEvent.objects.get(run=report["run_id"], kind="stop.requested")
    reason = f"parent {report['parent']['run_id']} failed"
    assert (asked.data["signal"], asked.data["reason"]) == ("dependency", reason)


@pytest.mark.usefixtures("stack_db")
def test_it_goes_on_if_its_parent_does_not_fail(drills: Drills) -> None:
    report = drills[NEVER_FAILS].report
    assert report["status"] == "completed"
    assert not Run.objects.get(pk=report["parent"]["run_id"]).is_active
