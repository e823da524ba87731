"""The world's record, as files: each effect, what became of it, and all of it in parts."""

from pathlib import Path

import pytest

from tools.journal import Journal
from tools.world.journal import (
    CALENDAR,
    CHAT,
    GIT,
    HOOKS,
    MAIL,
    PAYMENTS,
    TICKETS,
)
from tools.world.record import Effect, effects, effects_of, parts


def post(folder: Path, key: str, ts: str) -> None:
    Journal(folder / CHAT).append("posted", ts=ts, client_msg_id=key, channel="#team", text="Hi")


def everything(folder: Path) -> None:
    """One effect of each kind, one after the other."""
    Journal(folder / MAIL).append(
        "received", message_id="<req_mail@x>", to=["a@b.c"], subject="Hi", sender="", body=""
    )
    Journal(folder / CALENDAR).append(
        "created", href="/team/1.ics", uid="req_meeting", title="Review", start="2031-03-04"
    )
    post(folder, "req_message", "1")
    Journal(folder / TICKETS).append("opened", id="T-1", title="T", body="", key="req_ticket")
    pushed = {"branch": "b", "commit": "c", "request_id": "req_draft"}
    Journal(folder / GIT).append("branch_pushed", **pushed)
    Journal(folder / GIT).append("draft_opened", id="D-1", branch="b", key="req_draft")
    reserve(folder, "A-1", "req_payment")
    Journal(folder / PAYMENTS).append("captured", id="A-1", capture="C-1", key="k")
    Journal(folder / HOOKS).append("delivered", key="req_hook", body={}, tool="http.hooks")
    Journal(folder / HOOKS).append("delivered", key="of somebody else", body={}, tool="")


def reserve(folder: Path, name: str, request_id: str) -> None:
    Journal(folder / PAYMENTS).append(
        "authorized",
        id=name,
        amount=500,
        currency="EUR",
        customer="Acme Ltd",
        reference="Invoice 1",
        key=request_id,
        metadata={"request_id": request_id},
    )


def found(folder: Path) -> dict[str, Effect]:
    return {effect.request_id: effect for effect in effects(folder)}


def test_no_record_is_no_effect(tmp_path: Path) -> None:
    assert effects(tmp_path) == []


def test_each_effect_is_there_once_in_order_of_time_and_stands(tmp_path: Path) -> None:
    everything(tmp_path)

    assert [(each.tool, each.request_id) for each in effects(tmp_path)] == [
        ("email.send", "req_mail"),
        ("calendar.create_event", "req_meeting"),
        ("chat.post_message", "req_message"),
        ("tickets.create", "req_ticket"),
        ("git.open_draft", "req_draft"),
        ("payments.authorize_capture", "req_payment"),
        ("http.hooks", "req_hook"),
    ]
    assert {(each.undone_at, each.removals) for each in effects(tmp_path)} == {(None, 0)}


def test_what_was_taken_back_says_when_and_how_often(tmp_path: Path) -> None:
    everything(tmp_path)
    removed = Journal(tmp_path / CALENDAR).append("deleted", href="/team/1.ics")
    for _ in range(2):
        Journal(tmp_path / CHAT).append("deleted", ts="1")
    Journal(tmp_path / TICKETS).append("closed", id="T-1", note="")
    Journal(tmp_path / CHAT).append("deleted", ts="of something else")

    seen = found(tmp_path)
    times = {key: each.removals for key, each in seen.items() if each.undone_at}
    assert times == {"req_meeting": 1, "req_message": 2, "req_ticket": 1}
    at = seen["req_meeting"].undone_at
    assert at is not None
    assert at.isoformat() == removed["at"]


def test_a_draft_is_taken_back_once_both_its_halves_are(tmp_path: Path) -> None:
    everything(tmp_path)
    Journal(tmp_path / GIT).append("draft_closed", id="D-1")
    assert found(tmp_path)["req_draft"].undone_at is None

    Journal(tmp_path / GIT).append("branch_deleted", branch="b", commit="c")

    assert found(tmp_path)["req_draft"].undone_at is not None


def test_what_is_only_reserved_is_no_effect(tmp_path: Path) -> None:
    reserve(tmp_path, "A-1", "req_kept")
    reserve(tmp_path, "A-2", "req_let_go")
    Journal(tmp_path / PAYMENTS).append("voided", id="A-2", key="k")
    assert effects(tmp_path) == []


def test_a_payment_is_taken_back_once_all_of_it_is(tmp_path: Path) -> None:
    everything(tmp_path)
    for refund, undone in (("R-1", False), ("R-2", True)):
        record = Journal(tmp_path / PAYMENTS)
        record.append("refunded", id="A-1", refund=refund, amount=250, key=refund)
        assert (found(tmp_path)["req_payment"].undone_at is not None) == undone
    assert found(tmp_path)["req_payment"].removals == 1


def test_an_item_belongs_to_its_call(tmp_path: Path) -> None:
    post(tmp_path, "req_batch/2", "1")
    post(tmp_path, "req_single", "2")

    first, second = effects(tmp_path)
    assert (first.call_key, first.is_item) == ("req_batch", True)
    assert (second.call_key, second.is_item) == ("req_single", False)


def test_a_torn_line_is_no_effect(tmp_path: Path) -> None:
    post(tmp_path, "req_whole", "1")
    with (tmp_path / CHAT).open("a") as file:
        file.write('{"at": "2026-11-29T12:00:00+00:00", "event": "pos')

    assert list(found(tmp_path)) == ["req_whole"]


def test_the_parts_have_everything_once_and_each_call_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        post(tmp_path, f"req_{number % 20}/{number}", str(number))
    monkeypatch.setattr("tools.world.record.PART_SIZE", 1000)

    in_parts = [list(effects_of(part)) for part in parts(tmp_path)]

    assert len(in_parts) > 3
    together = sorted((each for part in in_parts for each in part), key=lambda each: each.at)
    assert together == effects(tmp_path)
    owners = [{each.call_key for each in part} for part in in_parts]
    assert sum(len(keys) for keys in owners) == len(set().union(*owners)) == 20


def test_a_change_of_a_meeting_stands_as_long_as_the_meeting_has_its_mark(tmp_path: Path) -> None:
    record = Journal(tmp_path / CALENDAR)
    about = {"href": "/team/1.ics", "uid": "lunch", "title": "Lunch", "start": "2031-03-04"}
    record.append("seeded", **about, status="", marks=[])
    record.append("changed", **about, status="", marks=["req_move"])
    record.append("changed", **about, status="CANCELLED", marks=["req_move", "req_cancel"])
    record.append("changed", **about, status="", marks=["req_move"])

    moved, cancelled = effects(tmp_path)
    assert (moved.tool, moved.request_id) == ("calendar.move_event", "req_move")
    assert (moved.undone_at, moved.removals) == (None, 0)
    assert (cancelled.tool, cancelled.request_id) == ("calendar.cancel_event", "req_cancel")
    assert (cancelled.undone_at is not None, cancelled.removals) == (True, 1)


def test_the_same_change_made_twice_is_there_twice(tmp_path: Path) -> None:
    record = Journal(tmp_path / CALENDAR)
    about = {"href": "/team/1.ics", "uid": "lunch", "title": "Lunch", "start": "", "status": ""}
    for marks in ([], ["req_move"], [], ["req_move"]):
        record.append("changed", **about, marks=marks)
    assert [each.request_id for each in effects(tmp_path)] == ["req_move", "req_move"]
