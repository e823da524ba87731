"""Kill -9, Stop of the undo, a message that comes twice, a lost doorbell: at undo boundaries.

A drill fails by itself if ledger and world disagree, I9 included: each effect was taken out of
the world once at most. The matrix plays every boundary, for more tools, with more that goes wrong.
"""

import pytest

from tests.drill.drills import Drills

UNDO = "--scenario tier-reversible --undo"
KILLED = {at: f"{UNDO} --kill-at {at}" for at in ("undo:planned", "undo:2:sent")}
STOPPED = {at: f"{UNDO} --stop-undo-at {at}" for at in ("undo:begin", "undo:2:sent")}
TWICE = [f"{UNDO} --twice-at undo:2:sent"]
LOST = [f"{UNDO} --lose-at undo:2:sent"]
STOPPED_AND_KILLED = f"{UNDO} --stop-undo-at undo:2:sent --kill-at undo:2:sent"
DRILLS = [*KILLED.values(), *STOPPED.values(), *TWICE, *LOST, STOPPED_AND_KILLED]

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]


def undos(drills: Drills, arguments: str) -> list[str]:
    """What became of each call, in the order in which they landed."""
    return [call["undo"] for call in drills[arguments].report["groups"]["done"]]


@pytest.mark.parametrize("arguments", [*KILLED.values(), *TWICE, *LOST])
def test_everything_is_undone_once(drills: Drills, arguments: str) -> None:
    assert undos(drills, arguments) == ["undone", "undone"]


def test_a_stop_of_the_undo_drops_what_has_not_begun(drills: Drills) -> None:
    assert undos(drills, STOPPED["undo:2:sent"]) == ["possible", "undone"]


def test_before_anybody_asked_there_is_nothing_to_stop(drills: Drills) -> None:
    report = drills[STOPPED["undo:begin"]].report
    assert report["refused"] == ["Nothing of this run is being undone."]
    assert undos(drills, STOPPED["undo:begin"]) == ["undone", "undone"]


def test_what_a_killed_worker_did_after_the_stop_is_not_begun_again(drills: Drills) -> None:
    """It is out of the world, or not: nobody reported, so nobody says that it is undone."""
    assert undos(drills, STOPPED_AND_KILLED) == ["possible", "possible"]
