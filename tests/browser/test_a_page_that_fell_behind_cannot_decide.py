"""D12: a tab that has not heard of Stop asks for a decision still; a click there is refused."""

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Complaints, Visitor, badge, call, stop_button

pytestmark = [pytest.mark.browser, pytest.mark.stack]

MAIL = "Mail “Q3 review on Tuesday”"


def test_a_late_click_is_refused_with_the_reason(at_desk: Visitor, complaints: Complaints) -> None:
    complaints.forgive("409")
    run = at_desk.start("inbox")
    expect(call(at_desk.page, MAIL)).to_contain_text("Needs approval")
    behind = at_desk.context.new_page()
    behind.route_web_socket("**/ws/**", lambda _socket: None)  # opens, and never says anything
    behind.goto(run.path)
    approve = call(behind, MAIL).get_by_role("button", name="Approve")
    expect(approve).to_be_visible()

    stop_button(at_desk.page).click()
    expect(badge(at_desk.page)).to_contain_text("Stopped")
    approve.click()
    expect(behind.locator("#problem")).to_contain_text(
        "The run was stopped before this was decided."
    )
    assert "email.send" not in [effect.tool for effect in at_desk.effects(run)]
