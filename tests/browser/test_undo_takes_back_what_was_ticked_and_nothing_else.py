"""Undo: tick, preview, confirm, see it happen; the world has it undone, and the rest stands."""

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Visitor, call, numbers, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_one_of_two_is_undone_and_the_other_stands(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("ticket", "call:4:gate")
    expect(call(page, "Message to #team")).to_contain_text("Under way")
    stop_button(page).click()
    expect(verdict(page)).to_have_text("Stopping: 1 action in flight …")
    run.let_go("call:4:gate")
    expect(verdict(page)).to_have_text("Four things happened.")
    other = at_desk.open(run.path)

    message = call(page, "Message to #team")
    message.get_by_role("checkbox").check()
    page.get_by_role("button", name="Undo what is ticked").click()
    preview = page.locator("#undo-preview")
    expect(preview).to_contain_text("This is what undo will do")
    expect(preview).to_contain_text("Message to #team")
    expect(preview).to_contain_text("People may have read it")
    expect(preview.locator("li")).to_have_count(1)
    assert [effect.undone_at for effect in at_desk.effects(run)] == [None, None]
    for tick in (message.get_by_role("checkbox").uncheck, message.get_by_role("checkbox").check):
        tick()  # it is no preview of what is ticked now
        expect(preview).to_be_empty()
    page.get_by_role("button", name="Undo what is ticked").click()

    preview.get_by_role("button", name="Undo this action").click()
    for tab in (page, other):
        expect(tab.locator("#undo-progress")).to_have_text("One action is undone.")
        expect(call(tab, "Message to #team")).to_contain_text("Undone")
        expect(call(tab, "Ticket")).not_to_contain_text("Undone")
        expect(verdict(tab)).to_have_text("Four things happened. One of them has been undone.")
    assert numbers(page)["done"] == 4
    expect(page.get_by_role("checkbox")).to_have_count(1)
    undone = {effect.tool: effect.undone_at is not None for effect in at_desk.effects(run)}
    assert undone == {"tickets.create": False, "chat.post_message": True}
