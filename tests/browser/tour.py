"""A walk past every page, each in a state worth looking at."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from playwright.sync_api import Page, expect

from agentruns.services.stack import Stack
from tests.browser.visitor import Started, Visitor, badge, call, stop_button, verdict

GOAL = "Tell the team about the Q3 review and get the draft ready"
FIRST_MAIL = "Mail “Q3 review on Tuesday”"
LAST_MAIL = "Mail “Numbers attached”"


def walk(visitor: Visitor, stack: Stack) -> Iterator[str]:
    """Go from page to page; yields the name of each once the visitor's page shows it."""
    page = visitor.page
    page.goto("/")
    yield "no-runs"
    page.goto("/runs/new/?agent=inbox")
    yield "new-run"
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="Write what")).to_be_visible()
    yield "new-run-refused"
    yield from story(visitor, stack)
    open_undo_preview(page)
    yield "undo-preview"
    ticked = page.locator("#undo-preview input[name=call]").all()
    query = "&".join(f"call={each.input_value()}" for each in ticked)
    page.goto(f"{visitor.started[-1].path}undo/?{query}")
    yield "undo-page"
    page.get_by_role("button", name="Undo these").click()
    expect(page.locator("#undo-progress")).to_have_text("Three actions are undone.")
    yield "undone"
    page.goto("/")
    yield "runs"
    page.goto("/nothing/")
    yield "not-found"
    page.goto("/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    yield "sign-in"


def story(visitor: Visitor, stack: Stack) -> Iterator[str]:
    """A run from its first words to a stop that leaves something of each: done, in doubt, never
    started, and to be undone. One mail is rejected; the other one leaves just before Stop, and
    the server never says what became of it.
    """
    page = visitor.page
    run = visitor.start("inbox", "token:40", "call:6:gate", goal=GOAL)
    expect(page.locator("#run-head")).to_contain_text("40 tokens")
    yield "writing"
    run.let_go("token:40")
    first = call(page, FIRST_MAIL)
    expect(first).to_contain_text("Needs approval")
    expect(call(page, "Meeting")).to_contain_text("Done")
    yield "asking"
    first.get_by_label("Reason").fill("Bo has not agreed to the time yet")
    first.get_by_role("button", name="Reject").click()
    last = call(page, LAST_MAIL)
    last.get_by_role("button", name="Approve").click()
    expect(last).to_contain_text("Leaving now")
    with fault(stack, service="smtp", mode="drop_after"):
        stop_and_doubt(page, run)
    yield "stopped"


def stop_and_doubt(page: Page, run: Started) -> None:
    stop_button(page).click()
    expect(verdict(page)).to_have_text("Stopping: 1 action in flight …")
    run.let_go("call:6:gate")
    expect(badge(page)).to_contain_text("one thing in doubt")
    expect(verdict(page)).to_have_text("Four things happened. One is in doubt. One never started.")


@contextmanager
def fault(stack: Stack, **what: Any) -> Iterator[None]:
    """Have a server of the world do something wrong with its next effect."""
    address = f"http://127.0.0.1:{stack.env['WORLD_HTTP_PORT']}/_world/faults"
    httpx2.post(address, json=what).raise_for_status()
    try:
        yield
    finally:
        httpx2.delete(address).raise_for_status()


def open_undo_preview(page: Page) -> None:
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Undo what is ticked").click()
    expect(page.locator("#undo-title")).to_be_visible()
