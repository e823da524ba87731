"""Ledger and world agree, and nothing leaks, wherever a run is stopped (A10, A4, B1, B13, B16).

Each drill is the real command, on real workers, against the world's real servers.
"""

import pytest

from agentruns.models import LedgerEvent, ToolCall
from tests.drill.drills import Drills

EFFECTS = ["calendar.create_event", "email.send", "git.open_draft", "chat.post_message"]

# Where Stop comes → what is done, and what never started, in that order.
STORIES: dict[str, tuple[list[str], list[str]]] = {
    "never": (["mail.search", *EFFECTS, "email.send"], []),
    "before-start": ([], []),
    "call:2:proposed": (["mail.search"], ["calendar.create_event"]),
    "call:2:buffered": (["mail.search"], ["calendar.create_event"]),
    "call:2:gate": (["mail.search", "calendar.create_event"], ["email.send"]),
    "call:2:sent": (["mail.search", "calendar.create_event"], ["email.send"]),
    "call:2:landed": (["mail.search", "calendar.create_event"], ["email.send"]),
    "call:3:gate": (["mail.search", "calendar.create_event", "email.send"], []),
    "call:5:buffered": (["mail.search", *EFFECTS[:3]], ["chat.post_message"]),
    "token:2": ([], []),
    "token:70": (["mail.search"], []),
}
KEPT = "--stop-at call:2:gate --pending freeze"
IN_THE_STREAM = "--stop-at token:330"
DRILLS = [*(f"--stop-at {point}" for point in STORIES), KEPT]

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("point", STORIES)
def test_what_is_done_and_what_never_started_is_what_the_world_says(
    drills: Drills, point: str
) -> None:
    played = drills[f"--stop-at {point}"]
    report = played.report
    done, never_started = STORIES[point]
    assert (played.tools("done"), played.tools("never_started")) == (done, never_started)
    assert [report["groups"][name] for name in ("failed", "in_flight", "in_doubt")] == [[]] * 3
    there = {tool: done.count(tool) for tool in done if tool != "mail.search"}
    assert played.effects() == there
    assert report["agreement"]
    assert report["leaked"] == []


@pytest.mark.parametrize("point", [point for point in STORIES if point != "never"])
def test_the_stop_is_one_step_of_the_epoch_and_ends_clean(drills: Drills, point: str) -> None:
    report = drills[f"--stop-at {point}"].report
    assert report["status"] == "stopped_clean"
    assert (report["stop"]["epoch"], report["stop"]["won_by"]) == (2, "stop")
    assert report["stop"]["safe_stop_ms"] is not None


def test_a_run_that_nobody_stops_goes_on_to_its_end(drills: Drills) -> None:
    report = drills["--stop-at never"].report
    assert (report["status"], report["stop"]) == ("completed", None)


@pytest.mark.usefixtures("stack_db")
def test_stop_in_step_two_ends_the_plan(drills: Drills) -> None:
    """B1: Stop says success, and later steps run. Not here."""
    run_id = drills["--stop-at call:2:gate"].report["run_id"]
    passed = LedgerEvent.objects.filter(run=run_id, kind="call.commit_allowed")
    assert sorted(passed.values_list("call__number", flat=True)) == [1, 2]
    assert not ToolCall.objects.filter(run=run_id, number__gt=2, gate_passed_at__isnull=False)


def test_what_had_not_started_can_be_kept_for_a_person(drills: Drills) -> None:
    [kept] = drills[KEPT].report["groups"]["never_started"]
    assert (kept["tool"], kept["state"]) == ("email.send", "frozen")
    assert drills[KEPT].effects() == {"calendar.create_event": 1}


def test_stop_before_the_start_leaves_nothing_to_do_for_a_late_message(drills: Drills) -> None:
    """A10. (On a busy machine the sweeper may have had it begin before the Stop.)"""
    report = drills["--stop-at before-start"].report
    assert (report["groups"]["done"], report["leaked"]) == ([], [])
    assert report["tokens"]["after_stop_250ms"] == 0


def test_stop_in_the_stream_ends_it_at_the_provider(drills: Drills) -> None:
    """B13: counted at the provider's side. (It writes on while its reader is held, two seconds
    from here to its end; at a call's own points less is left.)
    """
    report = drills[IN_THE_STREAM].report
    whole = drills["--stop-at never"].report["tokens"]["generated"]
    assert report["stop"]["generation_closed_ms"] is not None
    assert report["tokens"]["generated"] < whole


def test_the_machine_readable_report_is_all_that_is_printed(drills: Drills) -> None:
    played = drills["--stop-at call:2:gate"]
    assert set(played.report) >= {"run_id", "status", "stop", "groups", "world", "tokens"}
    # A bell that is lost on a busy machine is said in the log.
    assert [line for line in played.err.splitlines() if "doorbell.lost" not in line] == []
