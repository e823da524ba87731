"""What happened in the world, read from the servers' own records: files, and one table."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zlib import crc32

from tools.journal import Journal
from tools.world import database, journal

Entry = dict[str, Any]
JOURNALS = (
    journal.MAIL,
    journal.CALENDAR,
    journal.GIT,
    journal.CHAT,
    journal.TICKETS,
    journal.PAYMENTS,
    journal.FILES,
    journal.HOOKS,
)
# How much of the journals one part may have: it is held in memory while it is read.
PART_SIZE = 32 * 1024 * 1024

# The tools whose every effect these servers record.
RECORDED = (
    "email.send",
    "email.send_later",
    "calendar.create_event",
    "calendar.move_event",
    "calendar.cancel_event",
    "git.open_draft",
    "chat.post_message",
    "chat.announce",
    "tickets.create",
    "payments.authorize_capture",
    "files.write",
    "files.move",
    "files.delete",
    "sql.execute",
    "http.hooks",
)


@dataclass(frozen=True)
class Effect:
    """One effect, as the outside system recorded it. `undone_at` is None while it stands.

    `request_id` is what the caller sent as its key, "" if it sent none; that of an item of a call
    is the call's, "/" and the item's number. The same effect twice is two Effects with one
    request_id. `removals` counts how often it was taken back.
    """

    tool: str
    request_id: str
    at: datetime
    undone_at: datetime | None
    data: dict[str, Any]
    removals: int = 0

    @property
    def call_key(self) -> str:
        """The request_id of the call that it belongs to."""
        return self.request_id.partition("/")[0]

    @property
    def is_item(self) -> bool:
        return "/" in self.request_id


@dataclass(frozen=True)
class Part:
    """Part `number` (0, 1, …) of `of` of the world's record. All effects of a call are in one."""

    world_dir: Path
    number: int = 0
    of: int = 1

    def has(self, key: str) -> bool:
        """Whether the effect with this key is in this part."""
        call_key = key.partition("/")[0]
        return self.of == 1 or crc32(call_key.encode()) % self.of == self.number


def effects(world_dir: Path) -> list[Effect]:
    """Every effect in the world, in order of time."""
    return sorted(effects_of(Part(world_dir)), key=lambda effect: effect.at)


def parts(world_dir: Path) -> list[Part]:
    """The world's record in parts that each have room in memory, however long it is."""
    paths = [world_dir / name for name in JOURNALS]
    size = sum(path.stat().st_size for path in paths if path.exists())
    of = 1 + size // PART_SIZE
    return [Part(world_dir, number, of) for number in range(of)]


def effects_of(part: Part) -> Iterator[Effect]:
    """The effects in one part, journal by journal."""
    yield from _mails(part)
    for thing in _things(part, journal.CALENDAR, "created", "uid", "href", "deleted"):
        yield thing.as_effect("calendar.create_event", "title", "start")
    for thing in _changes(part):
        cancels = thing.entry["status"] == "CANCELLED"
        tool = "calendar.cancel_event" if cancels else "calendar.move_event"
        yield thing.as_effect(tool, "title", "start")
    yield from _drafts(part)
    for thing in _things(part, journal.CHAT, "posted", "client_msg_id", "ts", "deleted"):
        tool = "chat.announce" if "/" in thing.request_id else "chat.post_message"
        yield thing.as_effect(tool, "channel", "text")
    for thing in _things(part, journal.TICKETS, "opened", "key", "id", "closed"):
        yield thing.as_effect("tickets.create", "id", "title")
    yield from _payments(part)
    for thing in _things(part, journal.FILES, "done", "request_id", "request_id", "undone"):
        yield thing.as_effect(thing.entry["tool"], "changes")
    yield from _statements(part)
    for thing in _things(part, journal.HOOKS, "delivered", "key", "key", "removed"):
        if thing.entry["tool"]:  # others deliver, too
            yield thing.as_effect(thing.entry["tool"], "body")


@dataclass
class _Thing:
    """What one entry brought into the world, and when it was taken out again."""

    entry: Entry
    request_id: str
    ends: list[datetime] = field(default_factory=list)

    @property
    def at(self) -> datetime:
        return _at(self.entry)

    def as_effect(self, tool: str, *data: str) -> Effect:
        kept = {key: self.entry[key] for key in data}
        undone_at = self.ends[0] if self.ends else None
        return Effect(tool, self.request_id, self.at, undone_at, kept, len(self.ends))


def _things(part: Part, name: str, born: str, key: str, called: str, gone: str) -> list[_Thing]:
    """The things of one journal: `born` and `gone` are events, `key` says whose a thing is, and
    `called` what the world calls it.
    """
    found: list[_Thing] = []
    by_name: dict[str, list[_Thing]] = defaultdict(list)
    for entry in Journal(part.world_dir / name).entries():
        if entry["event"] == born and part.has(entry[key]):
            thing = _Thing(entry, entry[key])
            found.append(thing)
            by_name[entry[called]].append(thing)
        elif entry["event"] == gone and entry[called] in by_name:
            for thing in by_name[entry[called]]:
                thing.ends.append(_at(entry))
    return found


def _changes(part: Part) -> list[_Thing]:
    """The changes of events: one is there as long as the event has its mark."""
    found: list[_Thing] = []
    there: dict[str, dict[str, _Thing]] = defaultdict(dict)
    for entry in Journal(part.world_dir / journal.CALENDAR).entries():
        before, marks = there[entry["href"]], entry.get("marks", [])
        for mark in before.keys() - set(marks):
            before.pop(mark).ends.append(_at(entry))
        # Whoever created it has left a mark, too: its UID.
        for mark in set(marks) - before.keys() - {entry.get("uid")}:
            if entry["event"] == "changed" and part.has(mark):
                before[mark] = _Thing(entry, mark)
                found.append(before[mark])
    return found


def _at(entry: Entry) -> datetime:
    return datetime.fromisoformat(entry["at"])


def _mails(part: Part) -> Iterator[Effect]:
    for entry in Journal(part.world_dir / journal.MAIL).entries():
        request_id = entry["message_id"].strip("<>").partition("@")[0]
        if part.has(request_id):
            data = {key: entry[key] for key in ("to", "subject")}
            tool = "email.send_later" if "/" in request_id else "email.send"
            yield Effect(tool, request_id, _at(entry), None, data)


def _drafts(part: Part) -> Iterator[Effect]:
    """A pushed branch and its draft request are one effect; a second of either is a second one.

    Undone once all its parts are: the branch deleted, the request closed.
    """
    pushed: dict[str, list[_Thing]] = defaultdict(list)
    opened: dict[str, list[_Thing]] = defaultdict(list)
    for thing in _things(
        part, journal.GIT, "branch_pushed", "request_id", "branch", "branch_deleted"
    ):
        if thing.request_id:  # others push, too
            pushed[thing.request_id].append(thing)
    for thing in _things(part, journal.GIT, "draft_opened", "key", "id", "draft_closed"):
        opened[thing.request_id].append(thing)
    for request_id in pushed | opened:
        branches, requests = pushed[request_id], opened[request_id]
        for number in range(max(len(branches), len(requests))):
            yield _draft(branches[number : number + 1], requests[number : number + 1])


def _draft(branch: list[_Thing], request: list[_Thing]) -> Effect:
    halves = branch + request
    ends = [half.ends[0] for half in halves if half.ends]
    return Effect(
        "git.open_draft",
        halves[0].request_id,
        halves[0].at,
        max(ends) if len(ends) == len(halves) else None,
        {
            "branch": halves[-1].entry["branch"],
            "draft": request[0].entry["id"] if request else None,
        },
        max(len(half.ends) for half in halves),
    )


def _payments(part: Part) -> Iterator[Effect]:
    """A capture is the effect: what was only reserved is none. Undone once all is paid back."""
    held: dict[str, Entry] = {}
    captured: dict[str, Entry] = {}
    refunded: dict[str, list[Entry]] = defaultdict(list)
    for entry in Journal(part.world_dir / journal.PAYMENTS).entries():
        name = entry["id"]
        if entry["event"] == "authorized" and part.has(_payer(entry)):
            held[name] = entry
        elif entry["event"] == "captured" and name in held:
            captured[name] = entry
        elif entry["event"] == "refunded" and name in captured:
            refunded[name].append(entry)
    for name, entry in captured.items():
        data = {key: held[name][key] for key in ("amount", "currency", "customer", "reference")}
        is_back = sum(each["amount"] for each in refunded[name]) == data["amount"]
        undone_at = _at(refunded[name][-1]) if is_back else None
        yield Effect(
            "payments.authorize_capture",
            _payer(held[name]),
            _at(entry),
            undone_at,
            data | {"capture": entry["capture"]},
            int(is_back),
        )


def _payer(authorized: Entry) -> str:
    """Whose a reservation is, as its maker wrote on it; "" if it is nobody's of ours."""
    return str(authorized["metadata"].get("request_id") or "")


def _statements(part: Part) -> Iterator[Effect]:
    for change in database.changes(part.world_dir):
        if part.has(change.request_id):
            data = {"statement": change.statement, "params": change.params}
            undone_at = change.undone_at
            removals = 0 if undone_at is None else 1
            yield Effect("sql.execute", change.request_id, change.at, undone_at, data, removals)
