"""Chat and tickets: two small services whose record is also their memory.

Each rebuilds itself from its journal at the start, so nothing that it answered is ever lost.
Every method is called from several threads, and returns a status with a JSON body.
"""

import re
import threading
import time
from pathlib import Path
from typing import Any

from tools.journal import Journal
from tools.world import journal

Answer = tuple[int, dict[str, Any]]
CHANNELS = ("#team", "#general", "#finance", "#releases")


class Chat:
    """Slack-shaped. Like the real one it takes a `client_msg_id`, finds a message by it, and
    does not refuse the same one twice: a message sent twice is there twice."""

    def __init__(self, world_dir: Path) -> None:
        self._journal = Journal(world_dir / journal.CHAT)
        self._lock = threading.Lock()
        self._messages: dict[str, dict[str, Any]] = {}
        self._read: dict[str, dict[str, str]] = {}  # by channel and person, up to which ts
        self._last = 0.0
        for entry in self._journal.entries():
            self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        ts = entry["ts"]
        if entry["event"] == "posted":
            keys = ("channel", "ts", "text", "client_msg_id")
            self._messages[ts] = {key: entry[key] for key in keys}
            self._last = max(self._last, float(ts))
        elif entry["event"] == "edited":
            self._messages[ts]["text"] = entry["text"]
        elif entry["event"] == "read":
            self._read.setdefault(entry["channel"], {})[entry["user"]] = ts
        else:
            del self._messages[ts]

    def key_of(self, body: dict[str, Any]) -> str:
        """The key of the message that is to be posted, or was."""
        known = self._messages.get(str(body.get("ts")), body)
        return str(known.get("client_msg_id") or "")

    def post(self, body: dict[str, Any]) -> Answer:
        channel, text = body.get("channel"), body.get("text")
        if channel not in CHANNELS:
            return 200, {"ok": False, "error": "channel_not_found"}
        if not isinstance(text, str) or not text:
            return 200, {"ok": False, "error": "no_text"}
        with self._lock:
            # A ts names its message, so no two may be equal.
            self._last = max(time.time(), self._last + 0.000001)
            entry = self._journal.append(
                "posted",
                channel=channel,
                ts=f"{self._last:.6f}",
                text=text,
                client_msg_id=str(body.get("client_msg_id") or ""),
            )
            self._apply(entry)
            message = dict(self._messages[entry["ts"]])
        return 200, {"ok": True, "channel": channel, "ts": message["ts"], "message": message}

    def change(self, event: str, body: dict[str, Any]) -> Answer:
        """`event` is "edited" (with `text`) or "deleted"."""
        with self._lock:
            ts = str(body.get("ts"))
            message = self._messages.get(ts)
            if message is None or message["channel"] != body.get("channel"):
                return 200, {"ok": False, "error": "message_not_found"}
            data = {"text": str(body.get("text"))} if event == "edited" else {}
            self._apply(self._journal.append(event, channel=message["channel"], ts=ts, **data))
        return 200, {"ok": True, "ts": ts}

    def mark(self, body: dict[str, Any]) -> Answer:
        """Somebody has read a channel up to `ts`. (Slack's takes the user from the token.)"""
        channel, user, ts = (str(body.get(name) or "") for name in ("channel", "user", "ts"))
        if channel not in CHANNELS or not user or not re.fullmatch(r"\d+\.\d+", ts):
            return 200, {"ok": False, "error": "invalid_arguments"}
        with self._lock:
            self._apply(self._journal.append("read", channel=channel, user=user, ts=ts))
        return 200, {"ok": True}

    def _with_reads(self, message: dict[str, Any]) -> dict[str, Any]:
        """The message and how many have read it, where anybody in its channel said so."""
        markers = self._read.get(message["channel"])
        if markers is None:
            return dict(message)
        reads = sum(float(ts) >= float(message["ts"]) for ts in markers.values())
        return message | {"reads": reads}

    def history(self, client_msg_id: str | None, channel: str | None) -> Answer:
        with self._lock:
            found = [
                self._with_reads(message)
                for message in self._messages.values()
                if client_msg_id in (None, message["client_msg_id"])
                and channel in (None, message["channel"])
            ]
        return 200, {"ok": True, "messages": found}


class Tickets:
    """Takes an Idempotency-Key: the same key again answers with the first ticket."""

    def __init__(self, world_dir: Path) -> None:
        self._journal = Journal(world_dir / journal.TICKETS)
        self._lock = threading.Lock()
        self._tickets: dict[str, dict[str, Any]] = {}
        for entry in self._journal.entries():
            self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "opened":
            ticket = {key: entry[key] for key in ("id", "title", "body", "key")}
            self._tickets[entry["id"]] = ticket | {"state": "open", "version": 1, "notes": []}
            return
        ticket = self._tickets[entry["id"]]
        ticket["version"] += 1
        ticket["state"] = "closed" if entry["event"] == "closed" else ticket["state"]
        ticket["notes"].append(entry["note"])

    def open(self, body: dict[str, Any], key: str) -> Answer:
        title, text = body.get("title"), body.get("body")
        if not isinstance(title, str) or not title or not isinstance(text, str):
            return 422, {"error": "a ticket needs a title and a body"}
        with self._lock:
            for ticket in self._tickets.values():
                if key and ticket["key"] == key:
                    return 200, dict(ticket)
            number = f"T-{len(self._tickets) + 101}"
            self._apply(self._journal.append("opened", id=number, title=title, body=text, key=key))
            return 201, dict(self._tickets[number])

    def change(self, number: str, body: dict[str, Any], if_match: str) -> Answer:
        """Close it (`state: closed`) or add a note; a repeat of a close is no change."""
        with self._lock:
            ticket = self._tickets.get(number)
            if ticket is None:
                return 404, {"error": f"there is no ticket {number}"}
            closes = body.get("state") == "closed"
            note = str(body.get("note", ""))
            if closes and ticket["state"] == "closed":
                return 200, dict(ticket)
            if if_match and if_match.strip('"') != str(ticket["version"]):
                return 412, {"error": "the ticket was changed since", "ticket": dict(ticket)}
            event = "closed" if closes else "noted"
            self._apply(self._journal.append(event, id=number, note=note))
            return 200, dict(ticket)

    def find(self, key: str | None) -> Answer:
        with self._lock:
            found = [dict(item) for item in self._tickets.values() if key in (None, item["key"])]
        return 200, {"tickets": found}
