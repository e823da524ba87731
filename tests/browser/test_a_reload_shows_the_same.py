"""Whatever the run is doing, the page loaded anew says what the live page said."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor, badge, call, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_a_reload_shows_the_same_in_every_phase(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("inbox", "token:8", "call:3:gate")
    expect(page.locator("#run-head")).to_contain_text("8 tokens")
    must_stay(page)  # being written

    run.let_go("token:8")
    mail = call(page, "Mail “Q3 review on Tuesday”")
    expect(badge(page)).to_contain_text("Waiting for approval")
    expect(call(page, "Meeting")).to_contain_text("Done")
    must_stay(page)  # waiting for a person

    mail.get_by_role("button", name="Approve").click()
    expect(mail).to_contain_text("Leaving now")
    must_stay(page)  # under way
    stop_button(page).click()
    expect(verdict(page)).to_contain_text("in flight")
    must_stay(page)  # stopping

    run.let_go("call:3:gate")
    expect(verdict(page)).to_have_text("Three things happened.")
    must_stay(page)  # stopped
    call(page, "Meeting").get_by_role("checkbox").check()
    page.get_by_role("button", name="Undo what is ticked").click()
    page.get_by_role("button", name="Undo this action").click()
    expect(verdict(page)).to_contain_text("been undone")
    expect(page.locator("#undo-progress")).to_have_text("One action is undone.")
    must_stay(page)  # undone


def must_stay(page: Page) -> None:
    # All but the timeline, which grows with the time.
    places = "#run-head, #run-stopbox, #run-answer, #run-actions, #run-verdict, #run-inventory"
    before = page.locator(places).all_inner_texts()
    page.reload()
    expect(page.locator("#live")).to_have_text("Live")
    assert page.locator(places).all_inner_texts() == before
