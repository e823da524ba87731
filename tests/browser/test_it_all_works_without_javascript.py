"""Without JavaScript the pages are complete, except for being live."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tests.browser.visitor import (
    Visit,
    badge,
    call,
    inventory,
    numbers,
    reload_until,
    stop_button,
    verdict,
)

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_start_stop_read_and_undo_without_javascript(ana: User, visit: Visit) -> None:
    ana_without = visit(ana, java_script_enabled=False)
    page = ana_without.page
    run = ana_without.start("ticket", "call:4:gate")
    message = call(page, "Message to #team")
    reload_until(page, message.filter(has_text="Under way"))
    expect(page.locator("#foresight")).to_contain_text("1 action is under way")

    stop_button(page).click()
    expect(verdict(page)).to_have_text("Stopping: 1 action in flight …")
    run.let_go("call:4:gate")
    reload_until(page, badge(page).filter(has_text="Stopped"))
    assert numbers(page)["done"] == len(inventory(page)["done"]) == 4
    ticket = call(page, "Ticket")
    ticket.get_by_text("Receipt").click()
    expect(ticket).to_contain_text("What came back")

    ticket.get_by_role("checkbox").check()
    page.get_by_role("button", name="Undo what is ticked").click()
    expect(page.get_by_text("This is what undo will do")).to_be_visible()
    page.get_by_role("button", name="Undo this action").click()
    reload_until(page, verdict(page).filter(has_text="One of them has been undone."))
    undone = {effect.tool: effect.undone_at is not None for effect in ana_without.effects(run)}
    assert undone == {"tickets.create": True, "chat.post_message": False}
