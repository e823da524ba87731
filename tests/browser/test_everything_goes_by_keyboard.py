"""Sign in, start a run, stop it: without a mouse; and what is updated live takes no focus away."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.browser.visitor import GOAL, Visit, badge, call, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]

FOCUSED = "() => document.activeElement.id || document.activeElement.textContent.trim()"


def test_a_run_is_started_and_stopped_by_keyboard(ana: User, visit: Visit) -> None:
    ana_at_keys = visit(ana)
    page = ana_at_keys.page
    page.goto(ana_at_keys.sign_in_path)
    expect(page.get_by_role("button", name="Continue as Ana")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="My runs")).to_be_visible()
    tab_to(page, "New run")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New run")).to_be_visible()
    tab_to(page, page.locator("input[name=agent]").first.get_attribute("id") or "")
    page.keyboard.press("Space")
    if page.evaluate(FOCUSED) != "agent-inbox":  # arrows go through a group of radio buttons
        tab_to(page, "agent-inbox", keys="ArrowDown")
    expect(page.get_by_label("Inbox assistant")).to_be_checked()
    tab_to(page, "goal")
    page.keyboard.type(GOAL)
    run = ana_at_keys.about_to_start("inbox", "token:8", "call:4:proposed")
    tab_to(page, "Start")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{run.path}")

    expect(page.locator("#run-head")).to_contain_text("8 tokens")
    tab_to(page, "stop")
    run.let_go("token:8")
    mail = call(page, "Mail “Q3 review on Tuesday”")
    expect(mail).to_contain_text("Needs approval")  # much was drawn meanwhile
    expect(page.locator("#stop")).to_be_focused()

    tab_to(page, str(mail.get_by_label("Reason").get_attribute("id")))
    page.keyboard.type("Because ")
    expect(call(page, "Meeting")).to_contain_text("Done")
    page.keyboard.type("of Bo")
    expect(mail.get_by_label("Reason")).to_have_value("Because of Bo")
    tab_to(page, "Reject")
    page.keyboard.press("Enter")
    expect(mail).to_contain_text("Because of Bo")
    expect(mail).to_be_focused()  # where the question stood

    expect(call(page, "Draft")).to_be_visible()
    tab_to(page, "stop", keys="Shift+Tab")
    page.keyboard.press("Enter")
    expect(verdict(page)).to_contain_text("Stopping")
    run.let_go("call:4:proposed")
    expect(badge(page)).to_contain_text("Stopped")
    expect(page.locator("#stop")).to_be_focused()

    tick = call(page, "Meeting").get_by_role("checkbox")
    tab_to(page, str(tick.get_attribute("id")))
    page.keyboard.press("Space")
    expect(tick).to_be_checked()
    tab_to(page, "Undo what is ticked …")
    page.keyboard.press("Enter")
    expect(page.locator("#undo-title")).to_be_focused()
    tab_to(page, "Undo this action")
    page.keyboard.press("Enter")
    expect(verdict(page)).to_contain_text("been undone")
    assert page.evaluate("document.activeElement !== document.body")


def tab_to(page: Page, wanted: str, *, keys: str = "Tab", attempts: int = 40) -> None:
    """Press Tab until what has that id, or that text, has the focus, and shows it."""
    met = []
    for _ in range(attempts):
        page.keyboard.press(keys)
        met.append(page.evaluate(FOCUSED)[:40])
        if page.evaluate(FOCUSED) == wanted:
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"{attempts} × {keys} do not lead to {wanted}, but to {met}")
