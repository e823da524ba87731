"""The live page of a run: a WebSocket that says what changed. A doorbell with words on it.

Guarantees that what is sent is what the database says at that moment; that whoever reconnects
gets everything that they missed; that a page heals by itself if every doorbell was lost; and that
nobody is told anything that they may not see (any more). Nothing that a client sends changes
anything, so nothing that it sends can do harm.
"""

import asyncio
import contextlib
import json
import time
from collections import defaultdict
from typing import Any
from urllib.parse import parse_qs

import structlog
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext as _

from agentruns.cancellation import end_all
from agentruns.doorbell import run_group
from agentruns.page.reader import person_of, zone_of
from agentruns.page.run import find
from agentruns.page.shared import Drawing, Reader, off_loop, shared_drawing
from agentruns.postgresql.base import must_take_writes

APART = 0.05  # seconds between two drawings
JOIN_LIMIT = 5.0  # seconds for joining the run's group
LEAVING = 2.0  # seconds for leaving the run's group, before that is interrupted
LONGEST_REST = 1.0  # seconds between two drawings, however long they take
PAUSE = 1.0  # seconds until something that is away is tried again
TEXT_APART = 0.4  # seconds after which new text is drawn as Markdown
LOOK_AGAIN = 2.0  # seconds after which it looks without a doorbell
LOOK_AGAIN_ENDED = 10.0  # the same, once the run has ended
BEAT = 2.0  # seconds after which it says that it is there
LONGEST_MESSAGE = 1000  # characters of a client's message
NO_SUCH_RUN = 4404
SIGNED_OUT = 4403
TOO_MANY = 4429
BROKEN = 1011
MARKUP = frozenset("*_`#[]>|~-\n")

log = structlog.get_logger(__name__)


class RunConsumer(AsyncWebsocketConsumer):
    """One open page of one run, for one person.

    Sends `{"type": "state", seq, phase, order, html}`, where `html` holds each section of the
    page, or of the answer each piece, that is new or has changed since it was sent;
    `{"type": "text", output, offset, text}`: the output reads as it did up to `offset`, then as
    `text`; `{"type": "same", seq}` where it has looked and nothing was new; `{"type": "away"}`
    where it could not look, and goes on trying; `{"type": "beat"}` while it rests; and
    `{"type": "error", code, sentence}`.
    Takes `{"type": "refresh"}` from a page that noticed a hole, and nothing else.
    """

    channel_layer_alias = None  # see _listen: a page opens also while Redis is away

    async def connect(self) -> None:
        """Let in who may see the run."""
        self.run_id: str = self.scope["url_route"]["kwargs"]["run_id"]
        self.sent: Drawing | None = None
        self.has_ended = False
        self.changed = asyncio.Event()
        self.is_text_new = False
        self.tasks: list[asyncio.Task[None]] = []
        self.user_id: int | None = None  # as long as nobody is let in
        self.user_id = await off_loop(_who_may_see, self.run_id, self.scope)
        if self.user_id is None:
            await self.close(code=NO_SUCH_RUN)
            return
        await self.accept()
        await self._take_place(_open_pages[self.user_id])
        self.shared = shared_drawing(self.run_id, _reader(self.user_id, self.scope))
        self._ring()
        self.tasks = [asyncio.create_task(work) for work in (self._listen(), self._watch())]

    async def disconnect(self, code: int) -> None:
        if self.user_id is not None and self in (pages := _open_pages[self.user_id]):
            pages.remove(self)
            if not pages:
                del _open_pages[self.user_id]
        await end_all(self.tasks, apart=LEAVING)

    async def _take_place(self, pages: "list[RunConsumer]") -> None:
        """Among the person's open pages; the one that was opened first makes room."""
        pages.append(self)
        while len(pages) > settings.SOCKETS_PER_PERSON:
            oldest = pages.pop(0)
            await end_all(oldest.tasks, apart=LEAVING)
            with contextlib.suppress(OSError, RuntimeError):  # it is going by itself
                await oldest.close(code=TOO_MANY)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer a message of the client: the state anew, or what is wrong with the message."""
        if problem := _problem(text_data):
            await self._send({"type": "error", "code": "unknown_message", "sentence": problem})
            return
        self.sent = None
        self._ring()

    # --- What the doorbells say ----------------------------------------------------------------
    async def _listen(self) -> None:
        """Hear the run's doorbells, for as long as the page is open."""
        while True:
            try:
                await self._hear()
            except Exception as error:  # noqa: BLE001  (Redis is away: looking has to do)
                log.warning("page.hears_nothing", run_id=self.run_id, error=repr(error))
                await asyncio.sleep(PAUSE)

    async def _hear(self) -> None:
        layer = get_channel_layer()
        async with asyncio.timeout(JOIN_LIMIT):
            channel = await layer.new_channel()
            await layer.group_add(run_group(self.run_id), channel)
        # What was rung before we had joined is seen by looking once more.
        self._ring()
        try:
            while True:
                await self.dispatch(await layer.receive(channel))
        finally:
            with contextlib.suppress(Exception):
                await layer.group_discard(run_group(self.run_id), channel)

    async def run_changed(self, message: dict[str, Any]) -> None:
        self._ring()

    def _ring(self) -> None:
        """Have the page look: at a drawing that is begun from now on."""
        self.rang_at = time.monotonic()
        self.changed.set()

    async def run_text(self, message: dict[str, Any]) -> None:
        """New text goes out at once as it is; a little later it is drawn."""
        await self._send(
            {"type": "text", **{key: message[key] for key in ("output", "offset", "text")}}
        )
        if not self.is_text_new and MARKUP.intersection(message["text"]):
            self.is_text_new = True
            asyncio.get_running_loop().call_later(TEXT_APART, self._ring)

    # --- Looking -------------------------------------------------------------------------------
    async def _watch(self) -> None:
        """Look whenever a doorbell rang, and now and then without one."""
        while True:
            patience = LOOK_AGAIN_ENDED if self.has_ended else LOOK_AGAIN
            await self._rest(patience)
            self.changed.clear()
            self.is_text_new = False
            # Without a doorbell, what was drawn for another page a moment ago is new enough.
            moment = max(self.rang_at, time.monotonic() - patience)
            try:
                drawing = await self._look(moment)
            except (OperationalError, InterfaceError) as error:
                # The database is away for a moment; the page goes on saying what it last knew, and
                # that it may be old.
                log.warning("page.not_drawn", run_id=self.run_id, error=repr(error))
                await self._send({"type": "away"})
                await asyncio.sleep(PAUSE)
                continue
            except Exception:
                # A page that is not drawn any more must not look alive: it comes back, or says so.
                log.exception("page.broken", run_id=self.run_id)
                await self.close(code=BROKEN)
                return
            if drawing is None:
                await self.close(code=SIGNED_OUT)
                return
            self.has_ended = drawing.has_ended
            await self._show(drawing)
            # At least half of the time for others; who stood still while it drew has not drawn.
            await asyncio.sleep(min(max(APART, drawing.took), LONGEST_REST))

    async def _rest(self, patience: float) -> None:
        """Until a doorbell rings, for at most so many seconds; says meanwhile that it is there."""
        until = time.monotonic() + patience
        while not self.changed.is_set() and (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(min(BEAT, left)):
                    await self.changed.wait()
            except TimeoutError:
                if left > BEAT:
                    await self._send({"type": "beat"})

    async def _look(self, moment: float) -> Drawing | None:
        """The page as it was at `moment` or later, for whoever is signed in now; else None."""
        person = await off_loop(_person_now, self.scope["session"].session_key)
        if person is None or person.pk != self.user_id:
            return None
        return await self.shared.newer_than(moment)

    async def _show(self, drawing: Drawing) -> None:
        """Send what differs from what this page was sent before."""
        before, self.sent = self.sent, drawing  # first, so that a refresh meanwhile is not lost
        news = drawing.news(before, self.scope["cookies"].get("csrftoken", ""))
        if news or before is None or drawing.order != before.order:
            state = {"seq": drawing.seq, "phase": drawing.phase, "order": drawing.order}
            await self._send({"type": "state", **state, "html": news})
        else:
            await self._send({"type": "same", "seq": drawing.seq})

    async def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # the page has gone; it will come back
            await self.send(text_data=json.dumps(message, ensure_ascii=False))


# By person; in this process only, so with several that draw, each has its own count.
_open_pages: dict[int, list[RunConsumer]] = defaultdict(list)


def _person_now(session_key: str | None) -> Any:
    must_take_writes()  # a page that only reads would call itself live
    return person_of(session_key)


def _who_may_see(run_id: str, scope: dict[str, Any]) -> int | None:
    user = person_of(scope["session"].session_key)
    return user.pk if user is not None and find(run_id, user) is not None else None


def _reader(user_id: int, scope: dict[str, Any]) -> Reader:
    language = parse_qs(scope["query_string"].decode()).get("lang", [""])[0].lower()
    known = language if language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
    return Reader(user_id, known, str(zone_of(scope["cookies"]) or ""))


def _problem(text: str | None) -> str:
    """What is wrong with a client's message; "" for the one that we know."""
    if text is None:
        return _("Only text can be read here.")
    if len(text) > LONGEST_MESSAGE:
        return _("That message is too long.")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return _("That message cannot be read.")
    if not isinstance(message, dict) or message.get("type") != "refresh":
        return _("That message is not known here.")
    return ""
