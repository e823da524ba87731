"""kill -9 between the gate and the outcome: neither lost nor sent twice (C6, E6)."""

import pytest

from tests.drill.drills import Drills

AT_THE_GATE = "--stop-at call:2:gate --kill-at call:2:gate"
AFTER_THE_EFFECT = "--stop-at call:2:sent --kill-at call:2:sent"
A_MAIL_AFTER_THE_EFFECT = "--stop-at call:3:sent --kill-at call:3:sent"
NOBODY_STOPS_IT = "--stop-at never --kill-at call:2:sent"
DRILLS = [AT_THE_GATE, AFTER_THE_EFFECT, A_MAIL_AFTER_THE_EFFECT, NOBODY_STOPS_IT]

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]


def doubts(drills: Drills, arguments: str) -> list[tuple[str, str | None, str]]:
    return [(d["tool"], d["found"], d["state"]) for d in drills[arguments].report["doubts"]]


def test_killed_at_the_gate_it_is_found_not_to_have_happened(drills: Drills) -> None:
    assert doubts(drills, AT_THE_GATE) == [("calendar.create_event", "NotLanded", "failed")]
    assert drills[AT_THE_GATE].effects() == {}
    assert drills[AT_THE_GATE].report["status"] == "stopped_clean"


def test_killed_after_the_effect_it_is_found_to_have_happened_once(drills: Drills) -> None:
    assert doubts(drills, AFTER_THE_EFFECT) == [("calendar.create_event", "Receipt", "landed")]
    assert drills[AFTER_THE_EFFECT].effects() == {"calendar.create_event": 1}
    assert drills[AFTER_THE_EFFECT].report["status"] == "stopped_clean"


def test_what_cannot_be_looked_up_stays_in_doubt_for_a_person(drills: Drills) -> None:
    assert doubts(drills, A_MAIL_AFTER_THE_EFFECT) == [("email.send", None, "in_doubt")]
    assert drills[A_MAIL_AFTER_THE_EFFECT].effects()["email.send"] == 1
    assert drills[A_MAIL_AFTER_THE_EFFECT].report["status"] == "stopped_dirty"


def test_a_run_that_nobody_stopped_goes_on_after_the_look_up(drills: Drills) -> None:
    assert doubts(drills, NOBODY_STOPS_IT) == [("calendar.create_event", "Receipt", "landed")]
    assert drills[NOBODY_STOPS_IT].report["status"] == "completed"
    assert drills[NOBODY_STOPS_IT].effects()["calendar.create_event"] == 1
