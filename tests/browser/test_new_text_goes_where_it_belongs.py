"""Text comes over the socket with its place: twice, overlapping, late or too early, it is read
once and without a hole; where a message was dropped, the page sees the gap and asks (C10, C11).
"""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from agentruns.models import Output
from tests.browser.visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.stack]


class Wire:
    """A page's socket, held by the test in place of the server."""

    def __init__(self, page: Page, output: Output) -> None:
        self.asked: list[Any] = []
        self.whole = ""  # what it says when it is asked for what is missing
        self._output = output
        self._routes: list[WebSocketRoute] = []
        page.route_web_socket("**/ws/**", self._open)

    def _open(self, route: WebSocketRoute) -> None:
        self._routes.append(route)
        route.on_message(self._hear)

    def _hear(self, message: str | bytes) -> None:
        self.asked.append(json.loads(message))
        self.say(0, self.whole)

    def say(self, offset: int, text: str) -> None:
        message = {"type": "text", "output": self._output.pk, "offset": offset, "text": text}
        self._routes[-1].send(json.dumps(message))


def test_text_that_comes_twice_or_too_early_is_read_once(at_desk: Visitor) -> None:
    run = at_desk.start("report", "token:8")
    expect(at_desk.page.locator("#run-head")).to_contain_text("8 tokens")
    output = Output.objects.get(run=run.id)
    drawn, end = output.text.rstrip(), len(output.text)
    page = at_desk.context.new_page()
    wire = Wire(page, output)
    page.goto(run.path)
    prose = page.locator("[data-output]")
    expect(prose).to_have_text(drawn)

    wire.say(end, "and 😀 then")
    expect(prose).to_have_text(f"{output.text}and 😀 then")
    wire.say(end, "and 😀 then")  # again
    wire.say(end, "and")  # an earlier one, late
    wire.say(4, output.text[4:] + "and 😀 then some")  # from far before what is drawn
    expect(prose).to_have_text(f"{output.text}and 😀 then some")
    wire.say(end + len("and 😀"), " then some more")  # from within, behind an emoji
    expect(prose).to_have_text(f"{output.text}and 😀 then some more")
    assert wire.asked == []

    wire.whole = f"{output.text}and 😀 then some more, and the end"
    wire.say(len(wire.whole) - len("the end"), "the end")  # something is missing before it
    expect(prose).to_have_text(wire.whole)
    assert wire.asked == [{"type": "refresh"}]
