"""calendar.move_event and calendar.cancel_event on a real CalDAV server."""

import dataclasses
from typing import Any

import httpx2
import pytest
from icalendar import Calendar
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import OF_ONE_THING, act, arguments, lookup, prepare, tool, undo
from tests.tools.conftest import NewContext, RunningWorld
from tools.contract import Changed, Receipt, UndoReceipt
from tools.errors import BadArguments, NoEffect

MOVE, CANCEL, CREATE = "calendar.move_event", "calendar.cancel_event", "calendar.create_event"


def lunch(settings: Settings) -> str:
    return f"{settings.CALDAV_URL}team-lunch.ics"


def event_at(href: str) -> Any:
    return Calendar.from_ical(httpx2.get(href).raise_for_status().text).walk("VEVENT")[0]


def edit(href: str, old: str, new: str) -> None:
    """What a colleague does with a calendar of their own, which keeps what it does not know."""
    text = httpx2.get(href).text
    assert old in text
    httpx2.put(href, content=text.replace(old, new).encode()).raise_for_status()


def test_a_moved_meeting_takes_as_long_as_before_and_is_a_newer_version(
    world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    receipt = act(MOVE, new_context())
    event = event_at(lunch(settings))
    assert event["dtstart"].dt.isoformat() == "2031-03-06T12:30:00+00:00"
    assert event["dtend"].dt.isoformat() == "2031-03-06T13:30:00+00:00"
    assert event["sequence"] == 1
    assert str(event["summary"]) == "Team lunch"
    assert len(event["attendee"]) == 2
    assert receipt.response == "The meeting “Team lunch” was moved to 2031-03-06T13:30:00+01:00."


def test_a_cancelled_meeting_stays_where_it_was_and_says_so(
    world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    act(CANCEL, new_context())
    event = event_at(lunch(settings))
    assert (event["status"], event["sequence"]) == ("CANCELLED", 1)
    assert event["dtstart"].dt.isoformat() == "2031-03-05T12:00:00+00:00"


@pytest.mark.parametrize("name", OF_ONE_THING)
def test_undo_puts_back_word_for_word_what_was_there(
    name: str, world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    before = httpx2.get(lunch(settings))
    ctx = new_context()
    receipt = act(name, ctx)
    assert isinstance(undo(name, ctx, receipt), UndoReceipt)
    after = httpx2.get(lunch(settings))
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])


@pytest.mark.parametrize(
    ("name", "note"),
    [
        (MOVE, "The meeting “Team lunch” is back on Wed 5 Mar, 13:00."),
        (CANCEL, "The meeting “Team lunch”, Wed 5 Mar, 13:00, is no longer cancelled."),
    ],
)
def test_undo_says_when_it_takes_place_and_who_may_hear_of_it(
    name: str, note: str, world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    result = undo(name, ctx, act(name, ctx))
    assert result.note == (
        f"{note} Invited: ana@team.example, bo@team.example. The calendar may tell them."
    )


def test_a_removed_meeting_is_named_with_its_time_and_people(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    result = undo(CREATE, ctx, act(CREATE, ctx))
    assert result.note == (
        "The meeting “Q3 review”, Tue 4 Mar, 10:00, was removed from the calendar. "
        "Invited: ana@team.example, bo@team.example. The calendar may tell them."
    )


def test_creating_moving_and_cancelling_can_be_taken_back_in_reverse_order(
    world: RunningWorld, new_context: NewContext
) -> None:
    created, moved, cancelled = new_context(), new_context(), new_context()
    first = act(CREATE, created)
    uid = first.data["uid"]
    new = "2031-03-05T10:00:00+01:00"
    second = act(MOVE, moved, title="Q3 review", start=FIRST, uid=uid, new_start=new)
    third = act(CANCEL, cancelled, title="Q3 review", start=new, uid=uid)

    assert isinstance(lookup(MOVE, moved), Receipt), "also below a later change of ours"
    assert isinstance(undo(MOVE, moved, second), Changed), "not before what came after"
    assert isinstance(undo(CANCEL, cancelled, third), UndoReceipt)
    assert isinstance(undo(MOVE, moved, second), UndoReceipt)
    assert isinstance(undo(CREATE, created, first), UndoReceipt)
    for ctx in (created, moved, cancelled):
        (effect,) = world.effects(ctx)
        assert effect.undone_at is not None
        assert effect.removals == 1


FIRST = "2031-03-04T10:00:00+01:00"


@pytest.mark.parametrize("name", OF_ONE_THING)
def test_a_meeting_that_changed_since_it_was_read_is_left_alone(
    name: str, world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    ctx, args = new_context(), arguments(name)
    draft = prepare(name, ctx, args)
    edit(lunch(settings), "SUMMARY:Team lunch", "SUMMARY:Team dinner")
    with pytest.raises(NoEffect) as caught:
        tool(name).impl.commit(ctx, args, draft)
    assert (caught.value.code, caught.value.is_passing) == ("changed", False)
    assert str(event_at(lunch(settings))["summary"]) == "Team dinner"
    assert world.effects(ctx) == []


@pytest.mark.parametrize("name", [*OF_ONE_THING, CREATE])
def test_lookup_after_somebody_elses_change_finds_it_and_undo_leaves_that_change(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    """The answer was lost, and before anybody asked, a colleague wrote something into it."""
    ctx = new_context()
    href = act(name, ctx).data["href"]
    edit(href, "SUMMARY:", "LOCATION:Kitchen\r\nSUMMARY:")
    found = lookup(name, ctx)
    assert isinstance(found, Receipt)
    assert isinstance(undo(name, ctx, found), Changed)
    assert str(event_at(href)["location"]) == "Kitchen"


@pytest.mark.parametrize("name", OF_ONE_THING)
def test_a_meeting_that_was_removed_since_cannot_be_put_back(
    name: str, world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    ctx = new_context()
    receipt = act(name, ctx)
    httpx2.delete(lunch(settings)).raise_for_status()
    assert undo(name, ctx, receipt) == Changed(
        "Somebody removed the meeting from the calendar since."
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"title": "Team dinner"}, "not_found"),
        ({"start": "2031-03-05T12:00:00+01:00"}, "not_found"),
        ({"uid": "no-such-uid"}, "not_found"),
    ],
)
def test_a_meeting_that_is_not_there_as_it_was_named_is_not_touched(
    changes: dict[str, Any], code: str, world: RunningWorld, new_context: NewContext
) -> None:
    with pytest.raises(NoEffect) as caught:
        act(MOVE, new_context(), **changes)
    assert caught.value.code == code


def test_two_of_the_same_name_and_time_are_told_apart_by_their_uid(
    world: RunningWorld, new_context: NewContext
) -> None:
    named = {"title": "Twin", "start": "2031-04-01T09:00:00+00:00"}
    end = {"end": "2031-04-01T10:00:00+00:00", "attendees": []}
    one, other = (act(CREATE, new_context(), **named, **end) for _ in range(2))
    with pytest.raises(NoEffect) as caught:
        act(CANCEL, new_context(), **named)
    assert caught.value.code == "several"
    assert set(caught.value.data["uids"]) == {one.data["uid"], other.data["uid"]}
    receipt = act(CANCEL, new_context(), **named, uid=other.data["uid"])
    assert receipt.data["href"] == other.data["href"]
    assert "status" not in event_at(one.data["href"])


def test_a_cancelled_meeting_is_not_cancelled_again_by_another_call(
    world: RunningWorld, new_context: NewContext
) -> None:
    act(CANCEL, new_context())
    with pytest.raises(NoEffect) as caught:
        act(CANCEL, new_context())
    assert caught.value.code == "not_found"


def test_a_repeated_meeting_is_left_to_a_person(
    world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    edit(lunch(settings), "SUMMARY:", "RRULE:FREQ=WEEKLY\r\nSUMMARY:")
    with pytest.raises(NoEffect) as caught:
        act(MOVE, new_context())
    assert caught.value.code == "repeats"


def test_a_meeting_cannot_end_before_it_begins() -> None:
    with pytest.raises(BadArguments, match="new_end must be after new_start"):
        arguments(MOVE, new_end="2031-03-06T13:30:00+01:00")


def test_the_receipt_does_not_hold_the_password_of_the_calendar(
    world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    settings.CALDAV_URL = settings.CALDAV_URL.replace("http://", "http://bot:secret@")
    for name in (CREATE, MOVE):
        ctx = new_context()
        receipt = act(name, ctx)
        assert "secret" not in repr(dataclasses.asdict(receipt))
        assert isinstance(undo(name, ctx, receipt), UndoReceipt)
