"""What happened in the world, read from the servers' own records. Pure file reading."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tools.world import journal
from tools.world.journal import Journal

Entry = dict[str, Any]

# The tools whose effects these servers record.
RECORDED = (
    "email.send",
    "calendar.create_event",
    "git.open_draft",
    "chat.post_message",
    "tickets.create",
)


@dataclass(frozen=True)
class Effect:
    """One effect, as the outside system recorded it. `undone_at` is None while it stands.

    `request_id` is what the caller sent as its key, "" if it sent none. The same effect twice
    is two Effects with one request_id.
    """

    tool: str
    request_id: str
    at: datetime
    undone_at: datetime | None
    data: dict[str, Any]


def effects(world_dir: Path) -> list[Effect]:
    """Every effect in the world, in order of time."""
    found = [
        *_mails(_read(world_dir, journal.MAIL)),
        *_events(_read(world_dir, journal.CALENDAR)),
        *_drafts(_read(world_dir, journal.GIT)),
        *_messages(_read(world_dir, journal.CHAT)),
        *_tickets(_read(world_dir, journal.TICKETS)),
    ]
    return sorted(found, key=lambda effect: effect.at)


def _read(world_dir: Path, name: str) -> list[Entry]:
    return list(Journal(world_dir / name).entries())


def _at(entry: Entry) -> datetime:
    return datetime.fromisoformat(entry["at"])


def _mails(entries: list[Entry]) -> Iterator[Effect]:
    for entry in entries:
        request_id = entry["message_id"].strip("<>").partition("@")[0]
        data = {key: entry[key] for key in ("to", "subject")}
        yield Effect("email.send", request_id, _at(entry), None, data)


def _events(entries: list[Entry]) -> Iterator[Effect]:
    for index, entry in enumerate(entries):
        if entry["event"] != "created":
            continue
        undone = _first_after(entries, index, event="deleted", href=entry["href"])
        data = {key: entry[key] for key in ("title", "start")}
        yield Effect("calendar.create_event", entry["uid"], _at(entry), undone, data)


def _messages(entries: list[Entry]) -> Iterator[Effect]:
    for index, entry in enumerate(entries):
        if entry["event"] != "posted":
            continue
        undone = _first_after(entries, index, event="deleted", ts=entry["ts"])
        data = {key: entry[key] for key in ("channel", "text")}
        yield Effect("chat.post_message", entry["client_msg_id"], _at(entry), undone, data)


def _tickets(entries: list[Entry]) -> Iterator[Effect]:
    for index, entry in enumerate(entries):
        if entry["event"] != "opened":
            continue
        undone = _first_after(entries, index, event="closed", id=entry["id"])
        data = {key: entry[key] for key in ("id", "title")}
        yield Effect("tickets.create", entry["key"], _at(entry), undone, data)


def _first_after(entries: list[Entry], index: int, **wanted: str) -> datetime | None:
    for entry in entries[index + 1 :]:
        if all(entry.get(key) == value for key, value in wanted.items()):
            return _at(entry)
    return None


def _drafts(entries: list[Entry]) -> Iterator[Effect]:
    """A pushed branch and its draft request are one effect; a second of either is a second one.

    Undone once all its parts are: the branch deleted, the request closed.
    """
    pushed: dict[str, list[int]] = defaultdict(list)
    opened: dict[str, list[int]] = defaultdict(list)
    for index, entry in enumerate(entries):
        if entry["event"] == "branch_pushed" and entry["request_id"]:
            pushed[entry["request_id"]].append(index)
        if entry["event"] == "draft_opened":
            opened[entry["key"]].append(index)
    for request_id in pushed | opened:
        branches, requests = pushed[request_id], opened[request_id]
        for number in range(max(len(branches), len(requests))):
            parts = branches[number : number + 1] + requests[number : number + 1]
            yield _draft(entries, request_id, parts)


def _draft(entries: list[Entry], request_id: str, parts: list[int]) -> Effect:
    ends = []
    data: dict[str, Any] = {"branch": "", "draft": None}
    for index in parts:
        entry = entries[index]
        data["branch"] = entry["branch"]
        if entry["event"] == "draft_opened":
            data["draft"] = entry["id"]
            ends.append(_first_after(entries, index, event="draft_closed", id=entry["id"]))
        else:
            ends.append(
                _first_after(entries, index, event="branch_deleted", branch=entry["branch"])
            )
    done = [end for end in ends if end is not None]
    undone = max(done) if len(done) == len(parts) else None
    return Effect("git.open_draft", request_id, _at(entries[parts[0]]), undone, data)
