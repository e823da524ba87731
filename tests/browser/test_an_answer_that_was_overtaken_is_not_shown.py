"""The answer to a click may come after the live page has shown what happened since."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Page, Route, WebSocketRoute, expect

from tests.browser.visitor import Visitor, badge, call, notice, stop_button

pytestmark = [pytest.mark.browser, pytest.mark.stack]

DRAWN = """document.addEventListener("{}", () => {{ document.body.dataset.drawn = "yes"; }})"""


class Overtaken:
    """Holds back the answer to Pause: it says that an action is under way, and this page says by
    then that it is done.
    """

    def __init__(self, visitor: Visitor) -> None:
        self.page = visitor.page
        self._run = visitor.start("ticket", "call:3:gate")
        expect(call(self.page, "Ticket")).to_contain_text("Under way")
        self._held: list[tuple[Route, APIResponse]] = []
        self.page.route("**/pause/", self._hold_back)
        self.page.evaluate(DRAWN.format("page:drawn"))
        self.page.get_by_role("button", name="Pause").click()
        expect(call(self.page, "Ticket")).to_contain_text("Done")  # so the live page says

    def _hold_back(self, route: Route) -> None:
        self._held.append((route, route.fetch()))
        self._run.let_go("call:3:gate")

    def arrives(self, change: Callable[[str], str] = lambda body: body) -> None:
        ((route, answer),) = self._held
        body = answer.text()
        assert "under way" in body
        route.fulfill(response=answer, body=change(body))
        expect(self.page.locator("body")).to_have_attribute("data-drawn", "yes")


def test_it_does_not_bring_back_what_was(at_desk: Visitor) -> None:
    overtaken = Overtaken(at_desk)
    overtaken.arrives()
    assert "under way" not in notice(at_desk.page, "paused").inner_text()


def test_words_of_the_same_moment_are_looked_up_again(at_desk: Visitor) -> None:
    overtaken = Overtaken(at_desk)
    now = shown_seq(at_desk.page)
    overtaken.arrives(lambda body: re.sub(r'data-seq="\d+"', f'data-seq="{now}"', body))
    expect(notice(at_desk.page, "paused")).not_to_contain_text("under way")


def shown_seq(page: Page) -> str:
    return str(page.locator("#run").get_attribute("data-seq"))


class Drawings:
    """What the live page is sent; from `hold` on it is sent nothing more of it."""

    def __init__(self, page: Page) -> None:
        self.whole: dict[str, Any] = {}
        self._is_held = False
        page.route_web_socket(re.compile("/ws/runs/"), self._through)

    def _through(self, page: WebSocketRoute) -> None:
        self._page = page
        page.connect_to_server().on_message(self._hear)

    def _hear(self, message: str | bytes) -> None:
        said = json.loads(message)
        if said["type"] == "state" and "stopbox" in said["html"] and not self._is_held:
            self.whole = said
        if not self._is_held:
            self._page.send(message)

    def hold(self) -> None:
        self._is_held = True

    def send_again(self, seq: str) -> None:
        self._page.send(json.dumps(self.whole | {"seq": int(seq)}))


def test_a_drawing_from_before_the_stop_does_not_bring_its_button_back(at_desk: Visitor) -> None:
    page = at_desk.page
    drawings = Drawings(page)
    run = at_desk.start("inbox", "token:12")
    expect(page.locator("#run-head")).to_contain_text("12 tokens")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    held: list[Route] = []
    page.route(f"**{run.path}", lambda route: held.append(route))
    drawings.hold()

    stop_button(page).click()
    expect(stop_button(page)).to_contain_text("Stopping")
    page.evaluate(DRAWN.format("run:drawn"))
    drawings.send_again(shown_seq(page))
    expect(page.locator("body")).to_have_attribute("data-drawn", "yes")

    assert "Stopping" in stop_button(page).inner_text()
    run.let_go("token:12")
    held[0].continue_()
    expect(badge(page)).to_contain_text("Stop")
