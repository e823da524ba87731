"""Calendar events by CalDAV: create, move, cancel."""

from datetime import UTC, datetime
from typing import Annotated, Any, Self

import httpx2
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from icalendar import Calendar, Event
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from tools.builtin import caldav, http
from tools.builtin.caldav import Stored
from tools.builtin.fields import Address, Line
from tools.builtin.words import listed
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Data,
    Draft,
    LookupResult,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    UndoResult,
    Unknown,
)
from tools.errors import NoEffect
from tools.registry import tool

_ICALENDAR = {"Content-Type": "text/calendar; charset=utf-8"}


class CreateEvent(BaseModel):
    """Put an event into the team's calendar and invite people."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "title": "Q3 review",
                    "start": "2031-03-04T10:00:00+01:00",
                    "end": "2031-03-04T11:00:00+01:00",
                    "attendees": ["ana@team.example", "bo@team.example"],
                }
            ]
        }
    )

    title: Line
    start: AwareDatetime
    end: AwareDatetime
    attendees: Annotated[list[Address], Field(max_length=100)] = []

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Self:
        if self.end <= self.start:
            raise ValueError("end must be after start")
        return self


class CancelEvent(BaseModel):
    """Cancel one event of the team's calendar. It stays there, marked as cancelled.

    Name it by its title and when it starts; `uid` (which you are told when you create one) tells
    apart events that have both in common.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"title": "Team lunch", "start": "2031-03-05T12:00:00+00:00"}]
        }
    )

    title: Line
    start: AwareDatetime
    uid: Line | None = None


class MoveEvent(CancelEvent):
    """Move one event of the team's calendar to another time. Without `new_end` it takes as long
    as before.

    Name it by its title and when it starts now; `uid` (which you are told when you create one)
    tells apart events that have both in common.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "title": "Team lunch",
                    "start": "2031-03-05T12:00:00+00:00",
                    "new_start": "2031-03-06T12:30:00+00:00",
                }
            ]
        }
    )

    new_start: AwareDatetime
    new_end: AwareDatetime | None = None

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Self:
        if self.new_end and self.new_end <= self.new_start:
            raise ValueError("new_end must be after new_start")
        return self


@tool("calendar.create_event", tier=Tier.REVERSIBLE, args=CreateEvent, horizon=http.SERVED_WITHIN)
class CalendarCreateEvent:
    title = gettext_lazy("Create a meeting")
    explains = gettext_lazy("Puts a meeting into the team calendar. It can be removed again.")
    undo_note = gettext_lazy(
        "Removes the meeting, unless somebody changed it since. "
        "Whoever was invited may have seen it."
    )

    def describe(self, args: CreateEvent) -> str:
        words = {"title": args.title, "when": _when(args.start)}
        if not args.attendees:
            return _("Meeting “%(title)s”, %(when)s") % words
        count = len(args.attendees)
        return ngettext(
            "Meeting “%(title)s”, %(when)s, %(count)s person",
            "Meeting “%(title)s”, %(when)s, %(count)s people",
            count,
        ) % {**words, "count": count}

    def effect_of(self, args: CreateEvent) -> Data:
        """A meeting of the same title at the same time, whoever is invited."""
        start = args.start.astimezone(UTC).isoformat()
        return {"title": args.title.casefold(), "start": start}

    def prepare(self, ctx: Context, args: CreateEvent) -> Draft:
        """Write the event, whose UID is the request id."""
        return Draft({"ics": _new_event(ctx, args)})

    def void(self, ctx: Context, draft: Draft) -> None:
        """The draft is text in the caller's hands: there is nothing to clear away."""

    def commit(self, ctx: Context, args: CreateEvent, draft: Draft | None) -> Receipt:
        """Create the event; one that is there already comes from an earlier attempt of ours."""
        draft = draft or self.prepare(ctx, args)
        href = caldav.href_of(ctx.request_id)
        answer = http.send(
            ctx,
            "PUT",
            caldav.address(href),
            content=draft.data["ics"].encode(),
            headers=_ICALENDAR | {"If-None-Match": "*"},
            expect=(412,),
        )
        if answer.status_code != 412 and "etag" in answer.headers:
            return _created(ctx, Stored(href, answer.headers["etag"], draft.data["ics"]))
        found = self.lookup(ctx)
        if isinstance(found, Receipt):
            return found
        raise RuntimeError(f"the calendar answered {answer.status_code}, then: {found}")

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask the calendar for the event with our UID."""
        try:
            stored = caldav.get(ctx, caldav.href_of(ctx.request_id))
            if stored is None:
                return NotLanded()
            if str(stored.event.get("uid", "")) != ctx.request_id:
                return Unknown("the calendar answered with another event")
            return _created(ctx, stored) if stored.etag else Unknown("the calendar says no version")
        except (httpx2.HTTPError, ValueError) as error:
            return Unknown(caldav.why(error))

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Delete the event if it is still as we left it."""
        href, etag = receipt.data.get("href"), receipt.data.get("etag")
        if not href:
            return CannotUndo(_("The receipt does not say which meeting it was."))
        gone = True
        if etag:
            answer = http.request(ctx, "DELETE", caldav.address(href), headers={"If-Match": etag})
            gone = answer.status_code in (404, 410, 412)
            if not gone:
                answer.raise_for_status()
        if gone and (there := caldav.get(ctx, href)):
            return _was_changed(there)
        sentence = (
            _("The meeting “%(title)s”, %(when)s, was already gone.")
            if gone
            else _("The meeting “%(title)s”, %(when)s, was removed from the calendar.")
        )
        return UndoReceipt({"href": href}, _told(sentence, receipt.data, receipt.data.get("start")))


class _Change:
    """Changing an event that is there: by its version, marked as ours, the old one kept.

    A subclass says what it is (`describe`), what it does to the event (`change`), and how it is
    told when that has happened (`done`) and when it was taken back (`taken_back`).
    """

    def change(self, args: Any, event: Event) -> datetime:
        """Change the event; returns when it takes place after that."""
        raise NotImplementedError

    def done(self, kept: Data) -> str:
        raise NotImplementedError

    def taken_back(self) -> str:
        """A sentence with `title` and `when`, which is the old time."""
        raise NotImplementedError

    def prepare(self, ctx: Context, args: Any) -> Draft:
        """Read the event and write the changed one. Empty, if an earlier attempt has changed it."""
        try:
            if caldav.find(ctx, caldav.MARK, ctx.request_id):
                return Draft()
            stored = _only_one(_named(ctx, args), args)
        except (httpx2.HTTPError, ValueError) as error:
            raise NoEffect(
                "not_prepared",
                _("The calendar could not be read, so nothing was changed."),
                is_passing=http.is_passing(error),
                error=caldav.why(error),
            ) from error
        calendar = Calendar.from_ical(stored.text)
        (event,) = caldav.events(calendar)
        new_start = self.change(args, event)
        caldav.bump(event)
        kept = {
            "title": stored.title,
            "was": args.start.isoformat(),
            "start": new_start.isoformat(),
            "attendees": stored.attendees,
            "before": stored.text,
        }
        text = caldav.seal(calendar, ctx.request_id, kept)
        return Draft({"href": stored.href, "etag": stored.etag, "ics": text})

    def void(self, ctx: Context, draft: Draft) -> None:
        """The draft is text in the caller's hands: there is nothing to clear away."""

    def commit(self, ctx: Context, args: Any, draft: Draft | None) -> Receipt:
        """Put the changed event in the place of the one that was read, if that is still there."""
        draft, status = draft or self.prepare(ctx, args), 0
        if draft.data:
            href = draft.data["href"]
            answer = http.send(
                ctx,
                "PUT",
                caldav.address(href),
                content=draft.data["ics"].encode(),
                headers=_ICALENDAR
                | {"If-Match": draft.data["etag"], "X-Request-ID": ctx.request_id},
                expect=(412,),
            )
            if answer.status_code != 412 and "etag" in answer.headers:
                return self._receipt(ctx, Stored(href, answer.headers["etag"], draft.data["ics"]))
            status = answer.status_code
        found = self.lookup(ctx)
        if isinstance(found, Receipt):
            return found
        if status == 412 and isinstance(found, NotLanded):
            raise NoEffect(
                "changed", _("Somebody changed the meeting meanwhile, so it was left alone.")
            )
        raise RuntimeError(f"the calendar does not say whether it was changed: {found}")

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask the calendar for an event that has our mark, be it changed again since."""
        try:
            found = caldav.find(ctx, caldav.MARK, ctx.request_id)
            # Our marks go along where somebody copies the event; the seal holds for one alone.
            found.sort(key=lambda stored: caldav.kept_in(stored, ctx.request_id) is None)
            return self._receipt(ctx, found[0]) if found else NotLanded()
        except (httpx2.HTTPError, ValueError) as error:
            return Unknown(caldav.why(error))

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Put the old event back, if the changed one is still as we left it."""
        data = receipt.data
        href, etag, before = data.get("href"), data.get("etag"), data.get("before")
        if not href:
            return CannotUndo(_("The receipt does not say which meeting it was."))
        answer = None
        if etag and before:
            answer = http.request(
                ctx,
                "PUT",
                caldav.address(href),
                content=before.encode(),
                headers=_ICALENDAR | {"If-Match": etag, "X-Request-ID": ctx.request_id},
            )
        if answer is None or answer.status_code in (404, 409, 412):
            stored = caldav.get(ctx, href)
            if stored is None:
                return Changed(_("Somebody removed the meeting from the calendar since."))
            if not before or not stored.says_the_same_as(before):
                return _was_changed(stored)
        else:
            answer.raise_for_status()
        return UndoReceipt({"href": href}, _told(self.taken_back(), data, data.get("was")))

    def _receipt(self, ctx: Context, stored: Stored) -> Receipt:
        """What the event says of our change; without a version if it was changed again since."""
        kept = caldav.kept_in(stored, ctx.request_id)
        uid = str(stored.event.get("uid", ""))
        data: Data = {"href": stored.href, "uid": uid, "title": stored.title}
        if kept is None:
            return Receipt(data, f"The meeting “{stored.title}” was changed, and again since.")
        return Receipt(data | {"etag": stored.etag} | kept, self.done(kept))


@tool("calendar.move_event", tier=Tier.REVERSIBLE, args=MoveEvent, horizon=http.SERVED_WITHIN)
class CalendarMoveEvent(_Change):
    title = gettext_lazy("Move a meeting")
    explains = gettext_lazy("Moves a meeting of the team calendar. It can be moved back.")
    undo_note = gettext_lazy(
        "Moves the meeting back, unless somebody changed it since. "
        "Whoever was invited may have seen the new time."
    )

    def describe(self, args: MoveEvent) -> str:
        return _("Move the meeting “%(title)s” from %(start)s to %(new_start)s") % {
            "title": args.title,
            "start": _when(args.start),
            "new_start": _when(args.new_start),
        }

    def change(self, args: MoveEvent, event: Event) -> datetime:
        end = args.new_end or args.new_start + caldav.duration(event)
        for name in ("dtstart", "dtend", "duration"):
            event.pop(name, None)
        event.add("dtstart", args.new_start.astimezone(UTC))
        event.add("dtend", end.astimezone(UTC))
        return args.new_start

    def done(self, kept: Data) -> str:
        return f"The meeting “{kept['title']}” was moved to {kept['start']}."

    def taken_back(self) -> str:
        return _("The meeting “%(title)s” is back on %(when)s.")


@tool("calendar.cancel_event", tier=Tier.REVERSIBLE, args=CancelEvent, horizon=http.SERVED_WITHIN)
class CalendarCancelEvent(_Change):
    title = gettext_lazy("Cancel a meeting")
    explains = gettext_lazy("Marks a meeting of the team calendar as cancelled, or back again.")
    undo_note = gettext_lazy(
        "The meeting takes place after all, unless somebody changed it since. "
        "Whoever was invited may have made other plans."
    )

    def describe(self, args: CancelEvent) -> str:
        words = {"title": args.title, "when": _when(args.start)}
        return _("Cancel the meeting “%(title)s”, %(when)s") % words

    def change(self, args: CancelEvent, event: Event) -> datetime:
        event.pop("status", None)
        event.add("status", "CANCELLED")
        return args.start

    def done(self, kept: Data) -> str:
        return f"The meeting “{kept['title']}” on {kept['start']} was cancelled."

    def taken_back(self) -> str:
        return _("The meeting “%(title)s”, %(when)s, is no longer cancelled.")


def _named(ctx: Context, args: CancelEvent) -> list[Stored]:
    """The events that these arguments may mean. Cancelled ones no longer take place."""
    name, text = ("UID", args.uid) if args.uid else ("SUMMARY", args.title)
    return [
        each
        for each in caldav.find(ctx, name, text)
        if (each.title, each.start) == (args.title, args.start) and not each.is_cancelled
    ]


def _only_one(found: list[Stored], args: CancelEvent) -> Stored:
    words = {"title": args.title, "when": _when(args.start)}
    if not found:
        sentence = _("There is no meeting “%(title)s”, %(when)s, in the calendar.")
        raise NoEffect("not_found", sentence % words)
    if len(found) > 1:
        uids = [str(each.event.get("uid", "")) for each in found]
        sentence = _("There are several meetings “%(title)s”, %(when)s. Name one by its uid.")
        raise NoEffect("several", sentence % words, uids=uids)
    if found[0].repeats:
        sentence = _("The meeting “%(title)s” takes place again and again: a person has to do it.")
        raise NoEffect("repeats", sentence % words)
    if not found[0].etag:
        raise NoEffect("no_version", _("The calendar does not say which version it has."))
    return found[0]


def _new_event(ctx: Context, args: CreateEvent) -> str:
    event = Event()
    event.add("uid", ctx.request_id)
    event.add("dtstamp", timezone.now())
    # In UTC: an offset has no name of a zone, and CalDAV wants a definition for any other zone.
    event.add("dtstart", args.start.astimezone(UTC))
    event.add("dtend", args.end.astimezone(UTC))
    event.add("summary", args.title)
    for address in args.attendees:
        event.add("attendee", f"mailto:{address}")
    calendar = Calendar()
    calendar.add("prodid", "-//agentruns//agentruns//EN")
    calendar.add("version", "2.0")
    calendar.add_component(event)
    # As it was written: in the event it is in UTC, and nobody would know it again.
    return caldav.seal(calendar, ctx.request_id, {"start": args.start.isoformat()})


def _created(ctx: Context, stored: Stored) -> Receipt:
    """What is there; without a version if somebody changed it since."""
    kept = caldav.kept_in(stored, ctx.request_id)
    if kept:
        etag, start = stored.etag, kept["start"]
    else:
        etag, start = "", stored.start.isoformat() if stored.start else ""
    return Receipt(
        {
            "href": stored.href,
            "uid": ctx.request_id,
            "etag": etag,
            "title": stored.title,
            "start": start,
            "attendees": stored.attendees,
        },
        f"The meeting “{stored.title}” is in the calendar. Its uid is {ctx.request_id}.",
    )


def _was_changed(stored: Stored) -> Changed:
    words = {"title": stored.title, "when": _when(stored.start)}
    if stored.is_cancelled:
        sentence = _("The meeting was changed since: “%(title)s”, %(when)s, is cancelled.")
    else:
        sentence = _("The meeting was changed since: it is now “%(title)s”, %(when)s.")
    return Changed(sentence % words)


def _told(sentence: str, data: Data, start: str | None) -> str:
    """The sentence about this meeting, and who is listed for it: who tells them, we don't know."""
    when = datetime.fromisoformat(start) if start else None
    said = sentence % {"title": data.get("title", ""), "when": _when(when)}
    people = data.get("attendees")
    if people:
        invited = _("Invited: %(people)s. The calendar may tell them.")
        said = f"{said} {invited % {'people': listed(people)}}"
    return said


def _when(moment: datetime | None) -> str:
    # Translators: a date and time, in the letters of Django's `date` filter.
    return date_format(moment, _("D j M, H:i")) if moment else _("all day")
