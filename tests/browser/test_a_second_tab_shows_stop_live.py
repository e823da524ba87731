"""G3: Stop in one tab is seen in the other one, without loading it anew."""

import os
import signal

import pytest
from playwright.sync_api import expect

from agentruns.services.stack import Stack
from tests.browser.visitor import Complaints, Visitor, badge, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_stop_in_one_tab_shows_in_the_other(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("report", "token:8")
    expect(page.locator("#run-head")).to_contain_text("8 tokens")
    other = at_desk.open(run.path)
    expect(other.locator("#live")).to_have_text("Live")
    other.evaluate("window.isSame = true")

    stop_button(page).click()
    for tab in (page, other):
        expect(verdict(tab)).to_have_text("Stopping: the model is being cut off …")
    run.let_go("token:8")
    for tab in (page, other):
        expect(verdict(tab)).to_have_text("Stopped before any action.")
        expect(badge(tab)).to_contain_text("Stopped")
        expect(stop_button(tab)).to_have_text("Stopped")
    assert other.evaluate("window.isSame") is True


def test_a_page_that_hears_nothing_does_not_call_itself_live(
    at_desk: Visitor, stack: Stack, complaints: Complaints
) -> None:
    complaints.forgive("WebSocket")
    run = at_desk.start("report", "token:8")
    light = at_desk.page.locator("#live")
    expect(light).to_have_text("Live")

    os.kill(stack.pids["pages"], signal.SIGSTOP)
    try:
        expect(light).to_have_attribute("data-state", "away", timeout=12_000)
    finally:
        os.kill(stack.pids["pages"], signal.SIGCONT)
    expect(light).to_have_attribute("data-state", "live")

    stop_button(at_desk.page).click()
    run.let_go("token:8")
    expect(badge(at_desk.page)).to_contain_text("Stopped")
    os.kill(stack.pids["pages"], signal.SIGSTOP)
    try:
        expect(light).to_have_attribute("data-state", "away", timeout=12_000)
    finally:
        os.kill(stack.pids["pages"], signal.SIGCONT)
    expect(light).to_have_attribute("data-state", "live")
