"""Start on the page, watch, press Stop while the model writes, read what became of everything."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import (
    Visitor,
    answer,
    badge,
    call,
    inventory,
    numbers,
    stop_button,
    verdict,
)

pytestmark = [pytest.mark.browser, pytest.mark.stack]

GROUPS = ["done", "in_doubt", "never_started", "failed", "in_flight"]


def test_stop_in_the_stream_is_told_as_the_ledger_has_it(at_desk: Visitor) -> None:
    page = at_desk.page
    run = at_desk.start("inbox", "token:8", "call:6:buffered")
    watch_it_begin(page)
    run.let_go("token:8")
    watch_it_act(page)

    stop_button(page).click()
    expect(verdict(page)).to_have_text("Stopping: the model is being cut off …")
    run.let_go("call:6:buffered")
    expect(verdict(page)).to_have_text("Four things happened. Two never started.")
    expect(badge(page)).to_contain_text("Stopped")
    expect(stop_button(page)).to_be_visible()
    read_the_truth(page, at_desk, run.id)
    assert sorted(effect.tool for effect in at_desk.effects(run)) == [
        "calendar.create_event",
        "email.send",
        "git.open_draft",
    ]


def watch_it_begin(page: Page) -> None:
    """Prose appears while it is being written."""
    expect(badge(page)).to_contain_text("Running")
    expect(answer(page)).to_contain_text("I’ll start with your mail")
    expect(answer(page)).not_to_contain_text("really agreed")


def watch_it_act(page: Page) -> None:
    """Calls appear, each with its state; the mail waits for a word of a person."""
    expect(answer(page)).to_contain_text("really agreed")
    expect(call(page, "Search mail")).to_contain_text("Done")
    expect(call(page, "Meeting “Q3 review”")).to_contain_text("Done")
    mail = call(page, "Mail “Q3 review on Tuesday”")
    expect(mail).to_contain_text("Needs approval")
    mail.get_by_role("button", name="Approve").click()
    expect(mail).to_contain_text("Done")
    expect(call(page, "Draft “Q3 numbers for the review”")).to_contain_text("Done")
    expect(call(page, "Mail “Numbers attached”")).to_contain_text("Waits for the end of the answer")


def read_the_truth(page: Page, visitor: Visitor, run_id: str) -> None:
    """Five numbers that add up, each group as the API has it, and what became of the text."""
    groups = visitor.read(f"/runs/{run_id}")["groups"]
    assert groups.pop("waiting") == []
    assert numbers(page) == {group: len(groups[group]) for group in GROUPS}
    assert sum(numbers(page).values()) == 6
    expect(page.locator("#run-verdict .total")).to_have_text("6 actions in all")
    assert inventory(page) == {
        group: [each["summary"] for each in calls] for group, calls in groups.items() if calls
    }
    expect(page.locator("#run-verdict .phases")).to_contain_text("no new action possible")
    expect(page.locator("#run-verdict .phases")).to_contain_text("the model was cut off")
    expect(page.locator("#run-verdict .phases")).to_contain_text("settled")
    expect(page.locator("#run-verdict .is-open")).to_have_count(0)
    last = page.locator("#run-answer .prose").last
    expect(last).to_contain_text("Finance is not in that channel")
    expect(last.locator(".cut")).to_have_text(
        "Cut off here when you pressed Stop. This part is incomplete."
    )
    snapshot = visitor.read(f"/runs/{run_id}/snapshot")
    assert snapshot["partial_output"]["status"] == "incomplete"
    expect(page.locator("#run-answer .cut")).to_have_count(1)
