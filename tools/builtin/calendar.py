"""Calendar events by CalDAV."""

from datetime import UTC
from typing import Annotated, Self
from urllib.parse import quote, urljoin

import httpx2
from django.conf import settings
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from icalendar import Calendar, Event
from pydantic import AwareDatetime, BaseModel, Field, model_validator

from tools.builtin import http
from tools.builtin.fields import Address, Line
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Draft,
    LookupResult,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    UndoResult,
    Unknown,
)
from tools.registry import tool


class CreateEvent(BaseModel):
    """Put an event into the team's calendar and invite people."""

    title: Line
    start: AwareDatetime
    end: AwareDatetime
    attendees: Annotated[list[Address], Field(max_length=100)] = []

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Self:
        if self.end <= self.start:
            raise ValueError("end must be after start")
        return self


@tool("calendar.create_event", tier=Tier.REVERSIBLE, args=CreateEvent)
class CalendarCreateEvent:
    title = gettext_lazy("Create a meeting")
    explains = gettext_lazy("Puts a meeting into the team calendar. It can be removed again.")
    undo_note = gettext_lazy("Removes the meeting, unless somebody changed it since.")

    def describe(self, args: CreateEvent) -> str:
        # Translators: a date and time, in the letters of Django's `date` filter.
        when = date_format(args.start, _("D j M, H:i"))
        if not args.attendees:
            return _("Meeting “%(title)s”, %(when)s") % {"title": args.title, "when": when}
        count = len(args.attendees)
        return ngettext(
            "Meeting “%(title)s”, %(when)s, %(count)s person",
            "Meeting “%(title)s”, %(when)s, %(count)s people",
            count,
        ) % {"title": args.title, "when": when, "count": count}

    def prepare(self, ctx: Context, args: CreateEvent) -> Draft:
        """Write the event, whose UID is the request id."""
        return Draft({"ics": _event(ctx, args)})

    def void(self, ctx: Context, draft: Draft) -> None:
        """The draft is text in the caller's hands: there is nothing to clear away."""

    def commit(self, ctx: Context, args: CreateEvent, draft: Draft | None) -> Receipt:
        """Create the event; one that is there already comes from an earlier attempt of ours."""
        draft = draft or self.prepare(ctx, args)
        answer = http.send(
            ctx,
            "PUT",
            _href(ctx.request_id),
            content=draft.data["ics"].encode(),
            headers={"If-None-Match": "*", "Content-Type": "text/calendar; charset=utf-8"},
            expect=(412,),
        )
        if answer.status_code != 412 and "etag" in answer.headers:
            return _receipt(ctx, args.title, answer.headers["etag"])
        found = self.lookup(ctx)
        if isinstance(found, Receipt):
            return found
        raise RuntimeError(f"the calendar answered {answer.status_code}, then: {found}")

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask the calendar for the event with our UID."""
        try:
            answer = http.request(ctx, "GET", _href(ctx.request_id))
        except httpx2.HTTPError as error:
            return Unknown(http.why(error))
        if answer.status_code == 404:
            return NotLanded()
        if answer.status_code != 200 or "etag" not in answer.headers:
            return Unknown(f"the calendar answered {answer.status_code}")
        return _receipt(ctx, _title(answer.text), answer.headers["etag"])

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Delete the event if it is still as we left it."""
        href, etag = receipt.data.get("href"), receipt.data.get("etag")
        if not href or not etag:
            return CannotUndo(_("The receipt does not say which meeting it was."))
        answer = http.request(ctx, "DELETE", href, headers={"If-Match": etag})
        if answer.status_code == 412:
            answer = http.request(ctx, "GET", href)
        if answer.status_code in (404, 410):
            return UndoReceipt({"href": href}, _("The meeting was already gone."))
        if answer.request.method == "GET" and answer.status_code == 200:
            return Changed(
                _("The meeting was changed since: it is now “%(title)s”.")
                % {"title": _title(answer.text)}
            )
        answer.raise_for_status()
        return UndoReceipt({"href": href}, _("The meeting was removed from the calendar."))


def _href(uid: str) -> str:
    return urljoin(settings.CALDAV_URL, quote(uid, safe="") + ".ics")


def _event(ctx: Context, args: CreateEvent) -> str:
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
    return calendar.to_ical().decode()


def _title(ics: str) -> str:
    events = Calendar.from_ical(ics).walk("VEVENT")
    return str(events[0].get("summary", "")) if events else ""


def _receipt(ctx: Context, title: str, etag: str) -> Receipt:
    return Receipt(
        {"href": _href(ctx.request_id), "uid": ctx.request_id, "etag": etag, "title": title},
        f"The meeting “{title}” is in the calendar.",
    )
