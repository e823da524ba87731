"""Somebody at the pages: a person, with a browser of their own, on the whole running stack."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, WebError

from agentruns import demolinks
from agentruns.forms import NewRunForm
from agentruns.models import Agent, ToolCall
from agentruns.pausepoints import file_of
from agentruns.services.stack import Stack
from tests.signing_in import csrf_token
from tools.world.record import Effect, effects

GOAL = "Do what you do, please"
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@dataclass
class Complaints:
    """What browsers complain of: errors of scripts, of the content policy, of the network."""

    heard: list[str] = field(default_factory=list)
    _forgiven: list[str] = field(default_factory=list)

    def forgive(self, pattern: str) -> None:
        """This one belongs to what the test does: a socket that is cut, a page that is refused."""
        self._forgiven.append(pattern)

    def listen(self, context: BrowserContext) -> None:
        def on_console(line: ConsoleMessage) -> None:
            if line.type in ("error", "warning"):
                self.heard.append(f"{line.text} ({line.location.get('url', '')})")

        def on_error(error: WebError) -> None:
            self.heard.append(str(error.error))

        context.on("console", on_console)
        context.on("weberror", on_error)

    @property
    def left(self) -> list[str]:
        return [
            line for line in self.heard if not any(re.search(each, line) for each in self._forgiven)
        ]


@dataclass(frozen=True)
class Started:
    """A run that was started on the page. Whoever comes to one of its holds waits there."""

    id: str
    pauses: Path

    @property
    def path(self) -> str:
        return f"/runs/{self.id}/"

    def hold(self, point: str) -> None:
        path = file_of(self.pauses, self.id, point, "hold")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def let_go(self, point: str) -> None:
        file_of(self.pauses, self.id, point, "hold").unlink(missing_ok=True)

    def let_go_of_all(self) -> None:
        for hold in (self.pauses / self.id).glob("*.hold"):
            hold.unlink(missing_ok=True)


class Visitor:
    """One person in one browser. `page` is the first tab."""

    def __init__(self, user: User, context: BrowserContext, stack: Stack) -> None:
        self.user = user
        self.context = context
        self.started: list[Started] = []
        self._stack = stack
        self.page = context.new_page()

    def sign_in(self) -> None:
        """By a link as `make up` prints it, and the one button of its page."""
        page = self.context.request.get(self.sign_in_path)
        form = {"csrfmiddlewaretoken": csrf_token(page.text())}
        answer = self.context.request.post(page.url, form=form, max_redirects=0)
        assert answer.status == 302, answer.text()

    @property
    def sign_in_path(self) -> str:
        return demolinks.path_of(self.user.get_username(), self._stack.link_secret)

    def open(self, path: str) -> Page:
        """A new tab."""
        page = self.context.new_page()
        page.goto(path)
        return page

    def start(self, agent: str, *holds: str, goal: str = GOAL) -> Started:
        """Fill in the form of a new run and send it; whoever comes to one of `holds` waits."""
        self.page.goto(f"/runs/new/?agent={agent}")
        self.page.get_by_label("What should it do?").fill(goal)
        run = self.about_to_start(agent, *holds, goal=goal)
        self.page.get_by_role("button", name="Start", exact=True).click()
        self.page.wait_for_url(f"**{run.path}")
        return run

    def about_to_start(self, agent: str, *holds: str, goal: str = GOAL) -> Started:
        """The run that the form now in the page stands for."""
        key = self.page.locator("input[name=key]").input_value()
        form = NewRunForm(
            {"key": key, "agent": agent, "goal": goal}, agents=[Agent(slug=agent, name=agent)]
        )
        assert form.is_valid(), form.errors
        run = Started(form.run_id(self.user), Path(self._stack.env["PAUSE_DIR"]))
        self.started.append(run)
        for point in holds:
            run.hold(point)
        return run

    def read(self, path: str) -> Any:
        """What the API says to the same session."""
        answer = self.context.request.get(f"/api/v1{path}")
        assert answer.ok, answer.text()
        return answer.json()

    def effects(self, run: Started) -> list[Effect]:
        """What the world recorded of a run."""
        keys = set(ToolCall.objects.filter(run=run.id).values_list("request_id", flat=True))
        world_dir = self._stack.data_dir / "world"
        return [effect for effect in effects(world_dir) if effect.request_id in keys]


Visit = Callable[..., Visitor]
Walk = Callable[[Visitor, Stack], Iterator[str]]


# --- What stands on a run's page ----------------------------------------------------------------
def stop_button(page: Page) -> Locator:
    return page.locator("#stop")


def badge(page: Page) -> Locator:
    return page.locator("#run-head .pill")


def notice(page: Page, kind: str) -> Locator:
    """A line across the top of the page: paused, budget, degraded or workers."""
    return page.locator(f".notice.is-{kind}")


def verdict(page: Page) -> Locator:
    return page.locator("#run-verdict h2")


def answer(page: Page) -> Locator:
    return page.locator("#run-answer")


def call(page: Page, summary: str) -> Locator:
    """The row of the action whose summary begins so."""
    title = page.locator("b, .what", has_text=re.compile(rf"^\s*{re.escape(summary)}"))
    return page.locator("[id^=call-]").filter(has=title)


def numbers(page: Page) -> dict[str, int]:
    """The numbers of the verdict, by group."""
    found = page.locator("#numbers > div")
    return {
        str(each.get_attribute("data-group")): int(each.locator("dd").inner_text())
        for each in found.all()
    }


def inventory(page: Page) -> dict[str, list[str]]:
    """The actions that the page lists, by group."""
    groups = page.locator("#run-inventory .group")
    return {
        str(group.get_attribute("id")).removeprefix("group-"): group.locator(
            ".what"
        ).all_inner_texts()
        for group in groups.all()
    }


def reload_until(page: Page, locator: Locator, *, attempts: int = 300) -> None:
    """Load the page anew until it has `locator`, as somebody without JavaScript does."""
    for _ in range(attempts):
        if locator.count():
            return
        page.reload()
    raise AssertionError(f"not there after {attempts} reloads:\n{page.inner_text('main')}")
