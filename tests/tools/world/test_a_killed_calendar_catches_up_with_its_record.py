"""The record is what the ledger is held against: a kill between change and record leaves no gap."""

from pathlib import Path

from tools.journal import Journal
from tools.world import journal
from tools.world.calendars import SEED, serve_calendars
from tools.world.faults import Faults
from tools.world.record import effects

ITEM = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:{uid}
DTSTAMP:20310101T000000Z
DTSTART:20310106T090000Z
SUMMARY:Review
END:VEVENT
END:VCALENDAR
"""


def start(world_dir: Path) -> None:
    """One start and orderly end of the calendar's server."""
    server = serve_calendars(world_dir, Faults(world_dir), 0)
    server.shutdown()
    server.server_close()


def put(world_dir: Path, uid: str) -> Path:
    """An event that the server took in, and had no time to record."""
    (team,) = world_dir.glob("calendars/**/demo/team")
    item = team / f"{uid}.ics"
    item.write_text(ITEM.format(uid=uid))
    return item


def recorded(world_dir: Path) -> list[tuple[str, str]]:
    entries = Journal(world_dir / journal.CALENDAR).entries()
    return [(entry["event"], entry["href"]) for entry in entries if entry["href"] != SEED]


def test_what_was_changed_and_not_recorded_is_recorded_at_the_next_start(tmp_path: Path) -> None:
    start(tmp_path)
    item = put(tmp_path, "req_1")
    start(tmp_path)
    assert recorded(tmp_path) == [("created", "/demo/team/req_1.ics")]
    item.unlink()
    start(tmp_path)
    start(tmp_path)
    assert recorded(tmp_path) == [
        ("created", "/demo/team/req_1.ics"),
        ("deleted", "/demo/team/req_1.ics"),
    ]


def test_a_change_of_what_is_there_is_recorded_once(tmp_path: Path) -> None:
    start(tmp_path)
    item = put(tmp_path, "req_1")
    start(tmp_path)
    item.write_text(item.read_text().replace("T090000Z", "T100000Z"))
    start(tmp_path)
    start(tmp_path)
    assert [event for event, _href in recorded(tmp_path)] == ["created", "changed"]


def test_what_is_there_from_the_start_is_nobodys_effect(tmp_path: Path) -> None:
    start(tmp_path)
    start(tmp_path)
    events = [entry["event"] for entry in Journal(tmp_path / journal.CALENDAR).entries()]
    assert events == ["seeded"]
    assert effects(tmp_path) == []
