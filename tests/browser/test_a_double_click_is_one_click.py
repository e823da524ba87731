"""Clicked twice: one run, one Stop."""

import re

import pytest
from playwright.sync_api import expect

from agentruns.models import Run, StopRequest
from tests.browser.visitor import GOAL, Visitor, badge, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_start_and_stop_clicked_twice_count_once(at_desk: Visitor) -> None:
    page = at_desk.page
    page.goto("/runs/new/?agent=report")
    page.get_by_label("What should it do?").fill(GOAL)
    run = at_desk.about_to_start("report", "token:8")
    page.get_by_role("button", name="Start", exact=True).dblclick()
    page.wait_for_url(f"**{run.path}")
    expect(page.locator("#run-head")).to_contain_text("8 tokens")

    stop_button(page).dblclick()
    expect(verdict(page)).to_contain_text("Stopping")
    run.let_go("token:8")
    expect(badge(page)).to_contain_text("Stopped")
    stop_button(page).click(force=True)  # it says that it cannot be pressed any more
    page.goto("/")
    expect(page.locator(".line")).to_have_count(1)
    expect(page.locator(".line-state")).to_have_text(re.compile("Stopped"))
    assert [each.pk for each in Run.objects.filter(owner=at_desk.user)] == [run.id]
    assert StopRequest.objects.filter(run=run.id).count() == 1
    kinds = [event["kind"] for event in at_desk.read(f"/runs/{run.id}/ledger")["events"]]
    assert kinds.count("stop.requested") == 1
