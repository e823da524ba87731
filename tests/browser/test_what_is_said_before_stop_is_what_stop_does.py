"""Beside the button stands what Stop will do right now; that is then what it does."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor, call, numbers, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def foreseen(page: Page) -> dict[str, int]:
    """How many actions each sentence beside the button counts, by what it says of them."""
    words = page.locator("#foresight").inner_text()
    sentences = {
        "reports": r"(\d+) actions? (?:is|are) under way and will still report",
        "dropped": r"(\d+) drafted actions? will be dropped",
        "to_undo": r"(\d+) actions? (?:is|are) done and can be undone",
        "for_good": r"(\d+) actions? (?:is|are) done and cannot be undone",
    }
    found = {name: re.search(pattern, words) for name, pattern in sentences.items()}
    return {name: int(match[1]) for name, match in found.items() if match}


def test_with_an_action_under_way_and_another_one_drafted(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("ticket", "call:3:gate")
    expect(call(page, "Ticket")).to_contain_text("Under way")
    expect(page.locator("#foresight")).to_contain_text("will still report")
    assert foreseen(page) == {"reports": 1, "dropped": 1}

    stop_button(page).click()
    expect(verdict(page)).to_have_text("Stopping: 1 action in flight …")
    assert numbers(page) == {
        "done": 2,
        "in_doubt": 0,
        "never_started": 1,
        "failed": 0,
        "in_flight": 1,
    }
    run.let_go("call:3:gate")
    expect(verdict(page)).to_have_text("Three things happened. One never started.")


def test_with_actions_done_some_of_which_can_be_undone(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("inbox", "call:6:buffered")
    call(page, "Mail “Q3 review on Tuesday”").get_by_role("button", name="Approve").click()
    last = call(page, "Mail “Numbers attached”")
    expect(last).to_contain_text("Waits for the end of the answer")
    assert foreseen(page) == {"dropped": 2, "to_undo": 2, "for_good": 1}

    stop_button(page).click()
    expect(verdict(page)).to_have_text("Stopping: the model is being cut off …")
    run.let_go("call:6:buffered")
    expect(verdict(page)).to_have_text("Four things happened. Two never started.")
    expect(page.get_by_role("checkbox")).to_have_count(2)
    expect(page.locator("#group-done .row").filter(has_text="Cannot be undone")).to_have_count(1)
