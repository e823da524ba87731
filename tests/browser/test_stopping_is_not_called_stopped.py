"""While a mail is leaving, the page says so; “Stopped” stands there once it has reported."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor, badge, call, inventory, numbers, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]

# Every word that stood on the badge, the button and the verdict, in the order of their coming.
WATCH = """() => {
  window.said = [];
  const look = () => {
    for (const place of ["#run-head .pill", "#stop", "#run-verdict h2"]) {
      const words = document.querySelector(place)?.textContent.trim();
      if (words && !window.said.includes(words)) window.said.push(words);
    }
  };
  look();
  new MutationObserver(look).observe(document.getElementById("run"), {
    subtree: true, childList: true, characterData: true,
  });
}"""


def said(page: Page) -> list[str]:
    words: list[str] = page.evaluate("window.said")
    return words


def test_a_mail_in_flight_keeps_the_run_from_being_called_stopped(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("inbox", "call:3:gate")
    mail = call(page, "Mail “Q3 review on Tuesday”")
    mail.get_by_role("button", name="Approve").click()
    expect(mail).to_contain_text("Leaving now")
    expect(page.locator("#foresight")).to_contain_text(
        "1 action is leaving now and cannot be recalled."
    )

    page.evaluate(WATCH)
    stop_button(page).click()
    expect(verdict(page)).to_have_text("Stopping: 1 action in flight …")
    expect(badge(page)).to_contain_text("Stopping")
    expect(stop_button(page)).to_have_text("Stopping …")
    expect(page.locator("#run-verdict .phases")).to_contain_text("1 action still reports")
    assert numbers(page)["in_flight"] == 1
    assert inventory(page)["in_flight"] == [
        "Mail “Q3 review on Tuesday” to ana@team.example, bo@team.example"
    ]
    seen = said(page)
    page.reload()
    expect(verdict(page)).to_have_text("Stopping: 1 action in flight …")
    page.evaluate(WATCH)
    seen += said(page)
    assert not [words for words in seen if "Stopped" in words]

    run.let_go("call:3:gate")
    expect(verdict(page)).to_have_text("Three things happened.")
    expect(badge(page)).to_contain_text("Stopped")
    expect(stop_button(page)).to_have_text("Stopped")
    expect(page.locator("#run-verdict")).to_contain_text("before Stop, arrived")
    assert numbers(page)["in_flight"] == 0
    assert [effect.tool for effect in at_desk.effects(run)] == [
        "calendar.create_event",
        "email.send",
    ]
