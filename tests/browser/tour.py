"""Every page, in a state worth looking at."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from playwright.sync_api import Page, expect

from agentruns.services.stack import Stack
from tests.browser.visitor import Started, Visitor, badge, call, stop_button, verdict

FIRST_MAIL = "Mail “Q3 review on Tuesday”"
LAST_MAIL = "Mail “Numbers attached”"
GOAL = "Tell the team about the Q3 review and get the draft ready"


def asking(visitor: Visitor) -> Started:
    """A run that waits for a word of a person."""
    run = visitor.start("inbox", goal=GOAL)
    expect(call(visitor.page, FIRST_MAIL)).to_contain_text("Needs approval")
    expect(call(visitor.page, "Meeting")).to_contain_text("Done")
    return run


def stopped_with_everything(visitor: Visitor, stack: Stack) -> Started:
    """A stopped run that has something of each: done, in doubt, never started, to be undone.

    One mail was rejected; the other one left just before Stop, and its server never answered.
    """
    page = visitor.page
    run = visitor.start("inbox", "call:6:gate", goal=GOAL)
    mail = call(page, FIRST_MAIL)
    mail.get_by_label("Reason").fill("Bo has not agreed to the time yet")
    mail.get_by_role("button", name="Reject").click()
    last = call(page, LAST_MAIL)
    last.get_by_role("button", name="Approve").click()
    expect(last).to_contain_text("Leaving now")
    with fault(stack, service="smtp", mode="drop_after"):
        stop_button(page).click()
        expect(verdict(page)).to_have_text("Stopping: 1 action in flight …")
        run.let_go("call:6:gate")
        expect(badge(page)).to_contain_text("one thing in doubt")
    expect(verdict(page)).to_have_text(
        "Four things happened. One is in doubt. One never started."
    )
    return run


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
