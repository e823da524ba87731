"""The answer to a click may come after the live page has shown what happened since."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.visitor import Visitor, badge, call, stop_button

pytestmark = [pytest.mark.browser, pytest.mark.stack]

DRAWN = """document.addEventListener("page:drawn", () => { window.drawn = true; })"""


class Overtaken:
    """Holds back the page that is loaded after Stop: it says “Stopping”, and this page
    says “Stopped” by then.
    """

    def __init__(self, visitor: Visitor) -> None:
        self.page = visitor.page
        self._run = visitor.start("inbox", "call:1:gate")
        expect(call(self.page, "Search mail")).to_contain_text("Under way")
        self._held: list[tuple[Route, APIResponse]] = []
        self.page.route(f"**{self._run.path}", self._hold_back)  # looked at once Stop is through
        self.page.evaluate(DRAWN)
        stop_button(self.page).click()
        expect(badge(self.page)).to_contain_text("Stopped")  # so the live page says

    def _hold_back(self, route: Route) -> None:
        self._held.append((route, route.fetch()))
        self._run.let_go("call:1:gate")

    def arrives(self, change: Callable[[str], str] = lambda body: body) -> None:
        ((route, answer),) = self._held
        body = answer.text()
        assert "Stopping" in body
        route.fulfill(response=answer, body=change(body))
        self.page.wait_for_function("window.drawn")


def test_it_does_not_bring_back_what_was(at_desk: Visitor) -> None:
    overtaken = Overtaken(at_desk)
    overtaken.arrives()
    assert "Stopped" in badge(at_desk.page).inner_text()


def test_words_of_the_same_moment_are_looked_up_again(at_desk: Visitor) -> None:
    overtaken = Overtaken(at_desk)
    now = shown_seq(at_desk.page)
    overtaken.arrives(lambda body: re.sub(r'data-seq="\d+"', f'data-seq="{now}"', body))
    expect(badge(at_desk.page)).to_contain_text("Stopped")


def shown_seq(page: Page) -> str:
    return str(page.locator("#run").get_attribute("data-seq"))
