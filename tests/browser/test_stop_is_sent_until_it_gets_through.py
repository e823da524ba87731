"""Stop while what stands behind the page is away: the page says so, and presses it again."""

import pytest
from playwright.sync_api import Route, expect

from tests.browser.visitor import Complaints, Visitor, badge, stop_button

pytestmark = [pytest.mark.browser, pytest.mark.stack]


@pytest.mark.parametrize("trouble", [502, 503, 504, "no answer"])
def test_stop_is_sent_again_and_the_page_stays(
    at_desk: Visitor, complaints: Complaints, trouble: int | str
) -> None:
    complaints.forgive("Failed to load resource")
    complaints.forgive("htmx-2.min.js")
    page = at_desk.page
    run = at_desk.start("inbox", "token:12")
    expect(page.locator("#run-head")).to_contain_text("12 tokens")
    page.evaluate("window.isSame = true")
    attempts: list[int] = []

    def answer(route: Route) -> None:
        attempts.append(len(attempts))
        if len(attempts) > 2:
            route.continue_()
        elif isinstance(trouble, int):
            route.fulfill(status=trouble, body="Bad Gateway", content_type="text/plain")
        else:
            route.abort("connectionreset")

    page.route("**/stop/", answer)
    stop_button(page).click()

    expect(page.locator("#problem")).to_contain_text("Stop has not got through yet.")
    run.let_go("token:12")
    expect(badge(page)).to_contain_text("Stopped")
    expect(page.locator("#problem")).to_be_empty()
    assert len(attempts) == 3
    assert page.evaluate("window.isSame") is True
