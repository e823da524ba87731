"""What the contract tests cannot know of a tool by itself: one entry for each that needs one.

A tool that only reads needs none. For one that acts on a server of its own, say how its example
fits a world in which others were tried before, and how somebody else changes what it has done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx2
import psycopg
from pytest_django.fixtures import Settings

from tests.tools.conftest import RunningWorld
from tools.contract import Context, Data, Receipt
from tools.gitcli import git
from tools.world.record import Effect

CLOSED = "127.0.0.1:1"  # nobody listens there


@dataclass(frozen=True)
class Scene:
    """Where a tool is tried."""

    world: RunningWorld
    settings: Settings
    tmp: Path

    def effects(self, ctx: Context) -> list[Effect]:
        return self.world.effects(ctx)

    def go_away(self) -> None:
        """From now on, no outside system can be reached."""
        for name in ("CALDAV", "CHAT", "TICKETS", "GIT_API", "HOOKS", "PAYMENTS"):
            setattr(self.settings, f"{name}_URL", f"http://{CLOSED}/")
        self.settings.HTTP_ALLOWED_HOSTS = [CLOSED]
        self.settings.SMTP_URL = f"smtp://{CLOSED}"
        self.settings.SQL_TOOL_URL = f"postgresql://{CLOSED}/shop"
        blocked = self.tmp / "not a folder"
        blocked.touch()
        self.settings.FILES_DIR = blocked
        self.settings.MAIL_ARCHIVE = blocked


def as_it_is(scene: Scene, raw: Data) -> Data:
    return raw


@dataclass(frozen=True)
class Hands:
    """`service`: whose faults it meets in the demo world. `fit`: its example as it fits the scene.
    `change`: somebody else changes what the receipt is about. `lands_each_time`: its protocol
    takes no key, so a second commit has a second effect (which is why nothing is sent twice).
    """

    service: str = ""
    fit: Callable[[Scene, Data], Data] = as_it_is
    change: Callable[[Scene, Context, Receipt], None] | None = None
    lands_each_time: bool = False


# --- Examples that fit ---------------------------------------------------------------------------
def new_meeting(scene: Scene, raw: Data) -> Data:
    """A meeting at the example's time that nobody else has, to be changed."""
    name = uuid4().hex[:8]
    event = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//tests//EN",
        "BEGIN:VEVENT",
        f"UID:{name}",
        "DTSTAMP:20310101T000000Z",
        "DTSTART:20310305T120000Z",
        "DTEND:20310305T130000Z",
        f"SUMMARY:Lunch {name}",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    url = f"{scene.settings.CALDAV_URL}{name}.ics"
    kind = {"Content-Type": "text/calendar"}
    httpx2.put(url, content="\r\n".join(event).encode(), headers=kind).raise_for_status()
    return raw | {"title": f"Lunch {name}", "start": "2031-03-05T12:00:00Z"}


def new_branch(scene: Scene, raw: Data) -> Data:
    return raw | {"branch": f"{raw['branch']}-{uuid4().hex[:8]}"}


def new_name(scene: Scene, raw: Data) -> Data:
    return raw | {"path": f"{uuid4().hex[:8]}/{raw['path']}"}


def new_file(scene: Scene, raw: Data) -> Data:
    """A file of that name, to be moved or deleted."""
    raw = new_name(scene, raw)
    file = scene.settings.FILES_DIR / raw["path"]
    file.parent.mkdir(parents=True)
    file.write_text("Twelve chairs.\n")
    return raw | ({"to": f"{file.parent.name}-moved/{raw['to']}"} if "to" in raw else {})


def new_list(scene: Scene, raw: Data) -> Data:
    """A price list of its own."""
    name = f"list-{uuid4().hex[:8]}"
    with psycopg.connect(scene.settings.SQL_TOOL_URL) as database:
        database.execute("INSERT INTO price_lists VALUES (%s)", [name])
        database.execute("INSERT INTO prices VALUES (%s, 'chair', 79)", [name])
    return raw | {"params": raw["params"] | {"list": name}}


def this_world(scene: Scene, raw: Data) -> Data:
    return raw | {"url": raw["url"].replace("http://127.0.0.1:8801", scene.world.http)}


# --- What somebody else changes ------------------------------------------------------------------
def rename_the_meeting(scene: Scene, ctx: Context, receipt: Receipt) -> None:
    url = httpx2.URL(scene.settings.CALDAV_URL).join(receipt.data["href"])
    ics = httpx2.get(url).text.replace("SUMMARY:", "SUMMARY:Moved ")
    httpx2.put(url, content=ics.encode()).raise_for_status()


def edit_the_message(scene: Scene, ctx: Context, receipt: Receipt) -> None:
    kept = next(iter(receipt.data.get("items", {}).values()), receipt.data)
    body = {"channel": kept["channel"], "ts": kept["ts"], "text": "Wednesday!"}
    assert httpx2.post(f"{scene.world.http}/chat/chat.update", json=body).json()["ok"]


def work_on_the_ticket(scene: Scene, ctx: Context, receipt: Receipt) -> None:
    url = f"{scene.world.http}/tickets/tickets/{receipt.data['id']}"
    httpx2.patch(url, json={"note": "I am on it."}).raise_for_status()


def pay_some_of_it_back(scene: Scene, ctx: Context, receipt: Receipt) -> None:
    url = f"{scene.world.http}/payments/captures/{receipt.data['capture']}/refund"
    httpx2.post(url, json={"amount": 100}).raise_for_status()


def add_to_the_branch(scene: Scene, ctx: Context, receipt: Receipt) -> None:
    branch, work = receipt.data["branch"], scene.tmp / "colleague"
    git("clone", "--quiet", "--branch", branch, scene.settings.GIT_REMOTE, str(work), timeout=20)
    git("commit", "--quiet", "--allow-empty", "-m", "My part", cwd=work, timeout=20)
    git("push", "--quiet", "origin", branch, cwd=work, timeout=20)


def replace_the_delivery(scene: Scene, ctx: Context, receipt: Receipt) -> None:
    url = f"{scene.world.http}/hooks/deliveries/{ctx.request_id}"
    httpx2.put(url, json={"event": "another"}).raise_for_status()


def write_into_the_file(scene: Scene, ctx: Context, receipt: Receipt) -> None:
    """Whatever of it is there; for one that was deleted, somebody makes a new one."""
    names = receipt.data["changes"]
    file = scene.settings.FILES_DIR / next(iter(reversed(names)))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("Thirteen chairs.\n")


def set_another_price(scene: Scene, ctx: Context, receipt: Receipt) -> None:
    with psycopg.connect(scene.settings.SQL_TOOL_URL) as database:
        params = receipt.data["params"]
        database.execute("UPDATE prices SET price = 1 WHERE list = %s", [params["list"]])


HANDS: dict[str, Hands] = {
    "calendar.create_event": Hands("caldav", change=rename_the_meeting),
    "calendar.move_event": Hands("caldav", new_meeting, rename_the_meeting),
    "calendar.cancel_event": Hands("caldav", new_meeting, rename_the_meeting),
    "chat.post_message": Hands("chat", change=edit_the_message, lands_each_time=True),
    "chat.announce": Hands("chat", change=edit_the_message),
    "email.send": Hands("smtp", lands_each_time=True),
    "email.send_later": Hands("smtp"),
    "files.write": Hands("", new_name, write_into_the_file),
    "files.move": Hands("", new_file, write_into_the_file),
    "files.delete": Hands("", new_file, write_into_the_file),
    "git.open_draft": Hands("git", new_branch, add_to_the_branch),
    "http.hooks": Hands("hooks", change=replace_the_delivery),
    "http.request": Hands("hooks", this_world),
    "http.get": Hands("", this_world),
    "payments.authorize_capture": Hands("payments", change=pay_some_of_it_back),
    "sql.execute": Hands("", new_list, set_another_price),
    "tickets.create": Hands("tickets", change=work_on_the_ticket),
}
