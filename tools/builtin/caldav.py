"""CalDAV for the calendar's tools: find an event, and mark it as changed by a call.

Each change of ours leaves two properties in the event. `X-AGENTRUNS-REQUEST-ID` (one more for each
call) tells whose changes it has had. `X-AGENTRUNS-SEAL` has what the last of these calls needs
for its receipt, and a digest by which a later change by somebody else is noticed.
"""

import hashlib
import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit
from xml.sax.saxutils import escape

import httpx2
from defusedxml.ElementTree import fromstring
from django.conf import settings
from django.utils import timezone
from icalendar import Calendar, Event

from tools.builtin import http
from tools.contract import Context, Data

MARK, _SEAL = "X-AGENTRUNS-REQUEST-ID", "X-AGENTRUNS-SEAL"
_DAV, _CALDAV = "{DAV:}", "{urn:ietf:params:xml:ns:caldav}"
_QUERY = (
    '<C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">'
    "<D:prop><D:getetag/><C:calendar-data/></D:prop>"
    '<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT">'
    '<C:prop-filter name="{name}"><C:text-match>{text}</C:text-match></C:prop-filter>'
    "</C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"
)


@dataclass(frozen=True)
class Stored:
    """An event as the calendar has it: `text` is iCalendar, `etag` may be "" if none was said."""

    href: str
    etag: str
    text: str

    @cached_property
    def calendar(self) -> Calendar:
        calendar = Calendar.from_ical(self.text)
        assert isinstance(calendar, Calendar)
        return calendar

    @property
    def event(self) -> Event:
        """The event, or the first of a repeated one's."""
        return events(self.calendar)[0]

    @property
    def title(self) -> str:
        return str(self.event.get("summary", "")).strip()

    @property
    def start(self) -> datetime | None:
        """When it begins; None for one that takes whole days."""
        return moment(self.event, "dtstart")

    @property
    def repeats(self) -> bool:
        return len(events(self.calendar)) > 1 or any(
            name in self.event for name in ("rrule", "rdate")
        )

    @property
    def is_cancelled(self) -> bool:
        return str(self.event.get("status", "")).upper() == "CANCELLED"

    @property
    def attendees(self) -> list[str]:
        return [
            str(each).removeprefix("mailto:").removeprefix("MAILTO:")
            for each in values(self.event, "attendee")
        ]

    @property
    def marks(self) -> list[str]:
        """The request ids of the calls that changed it."""
        return [str(each) for each in values(self.event, MARK)]

    def says_the_same_as(self, text: str) -> bool:
        return _canonical(self.calendar) == _canonical(Calendar.from_ical(text))


def get(ctx: Context, href: str) -> Stored | None:
    """The event at this address; None if there is none. Raises httpx2.HTTPError."""
    answer = http.request(ctx, "GET", address(href))
    if answer.status_code in (404, 410):
        return None
    answer.raise_for_status()
    return Stored(bare(href), answer.headers.get("etag", ""), answer.text)


def find(ctx: Context, name: str, text: str) -> list[Stored]:
    """The events with a property that is exactly this.

    Raises httpx2.HTTPError or ValueError where there is no clear answer.
    """
    answer = http.request(
        ctx,
        "REPORT",
        settings.CALDAV_URL,
        content=_QUERY.format(name=name, text=escape(text)).encode(),
        headers={"Depth": "1", "Content-Type": "application/xml; charset=utf-8"},
    )
    answer.raise_for_status()
    if answer.status_code != 207:
        raise ValueError(f"the calendar answered {answer.status_code}")
    try:
        items = list(fromstring(answer.content).iter(f"{_DAV}response"))
    except SyntaxError as error:
        raise ValueError("the calendar answered with something else than XML") from error
    if any(" 507 " in (item.findtext(f"{_DAV}status") or "") for item in items):
        raise ValueError("the calendar has more events than it listed")  # RFC 5323, 3.3
    there = [_stored(item) for item in items]
    # The filter looks for the text anywhere in it, and not every server has filters.
    return [
        each
        for each in there
        if events(each.calendar) and text in map(str, values(each.event, name))
    ]


def seal(calendar: Calendar, request_id: str, kept: Data) -> str:
    """The text of this changed event, marked as changed by this call, with what its receipt
    needs (`kept`)."""
    (event,) = events(calendar)
    event.add(MARK, request_id)
    event.pop(_SEAL, None)
    sealed = {"request_id": request_id, "digest": _digest(calendar), "kept": kept}
    packed = zlib.compress(json.dumps(sealed).encode())
    event.add(_SEAL, urlsafe_b64encode(packed).decode())
    return calendar.to_ical().decode()


def kept_in(stored: Stored, request_id: str) -> Data | None:
    """What was kept by `seal`; None if the event was changed since, by whomever."""
    sealed = _unpacked(str(stored.event.get(_SEAL, "")))
    if sealed.get("request_id") != request_id or sealed["digest"] != _digest(stored.calendar):
        return None
    kept: Data = sealed["kept"]
    return kept


def events(calendar: Any) -> list[Event]:
    """The events in an iCalendar object."""
    return [each for each in calendar.walk("VEVENT") if isinstance(each, Event)]


def values(event: Event, name: str) -> list[Any]:
    """All values of a property that may be there several times."""
    found = event.get(name)
    return found if isinstance(found, list) else [] if found is None else [found]


def moment(event: Event, name: str) -> datetime | None:
    """A property that is a date and time; without a zone, it is in ours."""
    value = getattr(event.get(name), "dt", None)
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else timezone.make_aware(value)


def duration(event: Event) -> timedelta:
    """How long it takes, however it says so."""
    start, end = moment(event, "dtstart"), moment(event, "dtend")
    if start and end:
        return end - start
    length = getattr(event.get("duration"), "dt", None)
    return length if isinstance(length, timedelta) else timedelta(0)


def bump(event: Event) -> None:
    """Say that this is a newer version of the event."""
    sequence, now = int(event.get("sequence", 0)) + 1, timezone.now()
    for name, value in (("sequence", sequence), ("dtstamp", now), ("last-modified", now)):
        event.pop(name, None)
        event.add(name, value)


def href_of(uid: str) -> str:
    """Where the event with this UID is kept, if we put it there."""
    return bare(urljoin(settings.CALDAV_URL, quote(uid, safe="") + ".ics"))


def bare(href: str) -> str:
    """The full address, without the password that the setting may have: for receipts."""
    parts = urlsplit(urljoin(settings.CALDAV_URL, href))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def address(href: str) -> str:
    """The address to ask, with the password: always on the server that the setting names."""
    return urljoin(settings.CALDAV_URL, urlsplit(href).path)


def why(error: Exception) -> str:
    return http.why(error) if isinstance(error, httpx2.HTTPError) else str(error)


def _stored(item: Any) -> Stored:
    return Stored(
        bare(quote(unquote(item.findtext(f"{_DAV}href") or ""), safe="/:@")),
        item.findtext(f".//{_DAV}getetag") or "",
        item.findtext(f".//{_CALDAV}calendar-data") or "",
    )


def _digest(calendar: Calendar) -> str:
    return hashlib.sha256(_canonical(calendar)).hexdigest()


def _canonical(calendar: Any) -> bytes:
    """What an event says, without our seal, whatever order a server puts it in."""
    copy = Calendar.from_ical(calendar.to_ical())
    for event in events(copy):
        event.pop(_SEAL, None)
    return b"\n".join(sorted(copy.to_ical().splitlines()))


def _unpacked(text: str) -> dict[str, Any]:
    try:
        found = json.loads(zlib.decompress(urlsafe_b64decode(text)))
    except (ValueError, zlib.error):  # no seal, or no longer ours
        return {}
    return found if isinstance(found, dict) and "digest" in found else {}
