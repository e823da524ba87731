"""A reviewer sees the run and lets the mail go out; Stop is not theirs."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tests.browser.visitor import Visit, Visitor, call, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_a_reviewer_approves_and_has_no_stop(at_desk: Visitor, omar: User, visit: Visit) -> None:
    run = at_desk.start("inbox", "call:3:gate")
    expect(call(at_desk.page, "Mail “Q3 review on Tuesday”")).to_contain_text("Needs approval")
    reviewer = visit(omar).open(run.path)
    expect(reviewer.locator("#run-head")).to_contain_text("for Ana Berg")
    button = stop_button(reviewer)
    expect(button).to_have_text("Not yours to stop")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(reviewer.locator("#foresight")).to_have_text("Only Ana Berg or an admin can stop it.")
    button.click(force=True)

    mail = call(reviewer, "Mail “Q3 review on Tuesday”")
    mail.get_by_role("button", name="Approve").click()
    expect(mail).to_contain_text("Leaving now")
    expect(call(at_desk.page, "Mail “Q3 review on Tuesday”")).to_contain_text(
        "approved by Omar Haddad"
    )
    stop_button(at_desk.page).click()
    expect(verdict(reviewer)).to_have_text("Stopping: 1 action in flight …")
    run.let_go("call:3:gate")
    expect(verdict(reviewer)).to_have_text("Three things happened.")
    expect(reviewer.get_by_role("checkbox")).to_have_count(0)
