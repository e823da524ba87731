"""Pause, go on, stop, continue: by keyboard, and without JavaScript; nothing is lost on the way."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.browser.visitor import (
    Visit,
    Visitor,
    badge,
    call,
    notice,
    reload_until,
    stop_button,
    verdict,
)

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_by_keyboard_the_focus_goes_to_what_comes_next(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("ticket", "call:3:gate")
    expect(call(page, "Ticket")).to_contain_text("Under way")
    press(page, "Pause")
    expect(notice(page, "paused")).to_contain_text("1 action is still under way.")
    expect(page.locator("#notice-paused")).to_be_focused()
    run.let_go("call:3:gate")
    expect(notice(page, "paused")).not_to_contain_text("under way")
    expect(call(page, "Ticket")).to_contain_text("Done")
    expect(page.locator("#notice-paused")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Continue")).to_be_focused()
    page.keyboard.press("Enter")
    expect(notice(page, "paused")).to_have_count(0)
    expect(page.locator("#run-head")).to_be_focused()
    expect(badge(page)).to_contain_text("Finished")


def test_what_waits_while_paused_is_neither_sent_nor_lost(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("ticket", "call:3:buffered")
    expect(call(page, "Ticket")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(notice(page, "paused")).to_be_visible()
    run.let_go("call:3:buffered")
    expect(call(page, "Ticket")).to_contain_text("On hold")
    assert [effect.tool for effect in at_desk.effects(run)] == []
    page.get_by_role("button", name="Continue").click()
    expect(badge(page)).to_contain_text("Finished")
    assert [effect.tool for effect in at_desk.effects(run)] == [
        "tickets.create",
        "chat.post_message",
    ]


def test_without_javascript(ana: User, visit: Visit) -> None:
    ana_without = visit(ana, java_script_enabled=False)
    page = ana_without.page
    run = ana_without.start("ticket", "call:3:gate")
    reload_until(page, call(page, "Ticket").filter(has_text="Under way"))
    page.get_by_role("button", name="Pause").click()
    expect(notice(page, "paused")).to_contain_text("nothing new starts")
    page.get_by_role("button", name="Continue").click()
    expect(notice(page, "paused")).to_have_count(0)
    stop_button(page).click()
    run.let_go("call:3:gate")
    reload_until(page, badge(page).filter(has_text="Stopped"))
    page.get_by_role("link", name="Continue …").click()
    page.locator("#run-next").get_by_role("button", name="Continue").click()
    expect(page.locator("#run-earlier")).to_contain_text("An action was on its way")
    reload_until(page, badge(page).filter(has_text="Finished"))
    expect(verdict(page)).to_contain_text("It finished.")
    tickets = [each for each in ana_without.effects(run) if each.tool == "tickets.create"]
    assert len(tickets) == 1


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).focus()
    page.keyboard.press("Enter")
