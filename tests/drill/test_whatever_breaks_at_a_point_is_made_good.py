"""Each thing that a drill can do at a point: ledger and world agree after it (C4, C6, R71).

A drill fails by itself if something leaked, or if it never came to one of its points.
"""

import pytest

from tests.drill.drills import Drills

REVERSIBLE = "--scenario tier-reversible"
TWICE = f"{REVERSIBLE} --twice-at call:1:gate --twice-at think:1:leased"
LOST = f"{REVERSIBLE} --lose-at think:1:ended"
PAUSED = f"{REVERSIBLE} --pause-at call:1:gate"
RESUMED = f"{REVERSIBLE} --stop-at call:1:sent --pending freeze --resume"
UNDONE = "--scenario tier-compensable --undo --kill-at undo:2:sent"
UNDO_LOST = "--scenario tier-compensable --undo --lose-at undo:begin"
# (Held before its outcome is on record: after it, the next call would not wait for Stop.)
ASKER_KILLED = f"{REVERSIBLE} --stop-at call:1:sent --kill-at stop:committed"
# (The outcome rings for the next call, and so does the place that is free again.)
UNHEARD = "--lose-at call:1:sent --lose-at call:1:landed"
SWEEPER_KILLED = f"{REVERSIBLE} {UNHEARD} --kill-at sweep:silent"
REJECTED = "--scenario tier-irreversible --answer rejected --stop-at call:2:rejected"
SLOW = "--scenario tier-compensable --fault chat.post_message=slow --stop-at call:1:gate"
ANSWER_LOST = "--scenario tier-compensable --fault chat.post_message=drop --stop-at call:1:doubted"
DRILLS = [
    TWICE,
    LOST,
    PAUSED,
    RESUMED,
    UNDONE,
    UNDO_LOST,
    ASKER_KILLED,
    SWEEPER_KILLED,
    REJECTED,
    SLOW,
    ANSWER_LOST,
]

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]


@pytest.mark.parametrize("arguments", [TWICE, LOST, PAUSED, SWEEPER_KILLED])
def test_the_run_goes_on_to_its_end_and_has_each_effect_once(
    drills: Drills, arguments: str
) -> None:
    assert drills[arguments].report["status"] == "completed"
    assert drills[arguments].effects() == {"calendar.create_event": 2}


def test_the_messages_that_came_twice_are_named(drills: Drills) -> None:
    twice = [(each["at"], each["task"]) for each in drills[TWICE].report["twice"]]
    assert twice == [
        ("think:1:leased", "agentruns.tasks.think"),
        ("call:1:gate", "agentruns.tasks.act"),
    ]


def test_the_doorbells_that_were_lost_are_counted(drills: Drills) -> None:
    assert drills[LOST].report["lost"]["think:1:ended"] > 0


def test_a_stopped_run_that_is_taken_up_again_does_what_was_kept(drills: Drills) -> None:
    report = drills[RESUMED].report
    assert (report["status"], report["stop"]["won_by"]) == ("completed", "stop")
    assert drills[RESUMED].effects() == {"calendar.create_event": 2}


@pytest.mark.parametrize("arguments", [UNDONE, UNDO_LOST])
def test_everything_is_undone_once(drills: Drills, arguments: str) -> None:
    done = drills[arguments].report["groups"]["done"]
    assert [call["undo"] for call in done] == ["undone", "undone"]


def test_stop_holds_though_whoever_pressed_it_was_killed(drills: Drills) -> None:
    report = drills[ASKER_KILLED].report
    assert [killed["at"] for killed in report["killed"]] == ["stop:committed"]
    assert (report["status"], report["stop"]["epoch"]) == ("stopped_clean", 2)
    assert drills[ASKER_KILLED].effects() == {"calendar.create_event": 1}


def test_what_was_rejected_and_what_was_stopped_is_told_apart(drills: Drills) -> None:
    groups = drills[REJECTED].report["groups"]
    assert [call["state"] for call in groups["never_started"]] == ["rejected", "rejected"]
    assert drills[REJECTED].effects() == {}


@pytest.mark.parametrize("arguments", [SLOW, ANSWER_LOST])
def test_what_the_world_did_though_it_did_not_say_so_is_found(
    drills: Drills, arguments: str
) -> None:
    assert drills[arguments].report["status"] == "stopped_clean"
    assert drills[arguments].effects() == {"chat.post_message": 1}
