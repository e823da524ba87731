"""An irreversible action waits for a word of a person: approve, reject, or Stop."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tests.browser.visitor import PHONE, Visit, Visitor, call, inventory, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]

MAIL = "Mail “Q3 review on Tuesday”"


def test_what_is_approved_goes_out_as_it_was_shown(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("inbox", "call:4:proposed")
    mail = call(page, MAIL)
    shown = mail.locator(".fields")
    expect(shown.locator(".values > li")).to_have_text(["ana@team.example", "bo@team.example"])
    expect(shown).to_contain_text("If Tuesday does not suit you after all")
    assert "email.send" not in [effect.tool for effect in at_desk.effects(run)]

    mail.get_by_role("button", name="Approve").click()
    expect(mail).to_contain_text("Done")
    expect(mail).to_contain_text("approved by Ana Berg")
    sent = [effect for effect in at_desk.effects(run) if effect.tool == "email.send"]
    assert [(mail.data["subject"], mail.data["to"]) for mail in sent] == [
        ("Q3 review on Tuesday", ["ana@team.example", "bo@team.example"])
    ]


def test_what_is_rejected_stays_here_and_the_agent_is_told_why(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("inbox", "call:4:proposed")
    mail = call(page, MAIL)
    mail.get_by_label("Reason, if you reject it").fill("Not before Bo has answered")
    mail.get_by_role("button", name="Reject").click()
    expect(mail).to_contain_text("Rejected")
    expect(mail).to_contain_text("Ana Berg rejected it at")
    expect(page.locator("#run-answer")).to_contain_text("Not before Bo has answered")
    expect(call(page, "Draft")).to_be_visible()
    stop_button(page).click()
    expect(verdict(page)).to_contain_text("Stopping")
    run.let_go("call:4:proposed")
    expect(verdict(page)).to_have_text("Two things happened. Two never started.")
    assert "email.send" not in [effect.tool for effect in at_desk.effects(run)]


def test_stop_withdraws_the_question(at_desk: Visitor) -> None:
    """D12: nothing waits any more, and nobody is asked."""
    page = at_desk.page
    run = at_desk.start("inbox")
    expect(call(page, MAIL)).to_contain_text("Needs approval")
    expect(call(page, "Meeting")).to_contain_text("Done")
    stop_button(page).click()
    expect(verdict(page)).to_have_text("Two things happened. One never started.")
    expect(call(page, MAIL)).to_contain_text("Stopped before anyone approved it")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert list(inventory(page)) == ["done", "never_started"]
    assert "email.send" not in [effect.tool for effect in at_desk.effects(run)]


def test_on_a_phone_the_line_that_says_so_leads_there(ana: User, visit: Visit) -> None:
    somebody = visit(ana, **PHONE)
    page = somebody.page
    somebody.start("inbox")
    approve = call(page, MAIL).get_by_role("button", name="Approve")
    expect(approve).to_be_attached()
    expect(approve).not_to_be_in_viewport()
    page.get_by_role("link", name="It waits for somebody to approve 1 action.").click()
    expect(call(page, MAIL)).to_be_focused()
    expect(call(page, MAIL).locator("b")).to_be_in_viewport(ratio=1)
