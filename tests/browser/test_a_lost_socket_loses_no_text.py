"""G1, C10: the web server dies while the model writes; afterwards nothing is double or missing."""

import re

import pytest
from playwright.sync_api import Page, expect

from agentruns.models import Output
from agentruns.services.stack import Stack
from tests.browser.visitor import Complaints, Started, Visitor, badge, call, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]

# The answer as it is read, without the chips of calls.
READ = """place => {
  const copy = place.cloneNode(true);
  for (const chip of copy.querySelectorAll(".emit, .cut, h2")) chip.remove();
  return copy.textContent;
}"""


def test_what_was_written_meanwhile_is_there_once(
    at_desk: Visitor, stack: Stack, complaints: Complaints
) -> None:
    complaints.forgive("WebSocket connection")
    page = at_desk.page
    run = at_desk.start("inbox", "token:12", "token:30", "token:50")
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator("#run-head")).to_contain_text("12 tokens")
    page.evaluate("window.isSame = true")

    stack.kill("web")
    expect(page.locator("#live")).to_contain_text("Reconnecting … what you see may be old")
    run.let_go("token:12")  # nobody sees what is written now
    stack.wait_for("web")
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator("#run-head")).to_contain_text("30 tokens")
    must_read_as_written(page, run)
    expect(call(page, "Search mail")).to_contain_text("Done")

    run.let_go("token:30")
    expect(page.locator("#run-head")).to_contain_text("50 tokens")
    must_read_as_written(page, run)
    stop_button(page).click()
    expect(verdict(page)).to_have_text("Stopping: the model is being cut off …")
    run.let_go("token:50")
    expect(badge(page)).to_contain_text("Stopped")
    must_read_as_written(page, run)
    expect(verdict(page)).to_have_text("Nothing was changed. One thing was looked up.")
    assert page.evaluate("window.isSame") is True


def must_read_as_written(page: Page, run: Started) -> None:
    """The page reads as the ledger does, from the first letter to the last."""
    written = " ".join(Output.objects.get(run=run.id).text.split())
    expect(page.locator("#run-answer .prose").last).to_contain_text(written[-20:])
    read = page.locator("#run-answer").evaluate(READ)
    assert re.sub(r"\s+", "", read) == re.sub(r"\s+", "", written)
