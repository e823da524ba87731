"""axe finds nothing to complain of on any page, in light and in dark, on a desk and a phone."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from agentruns.services.stack import Stack
from tests.browser.tour import asking, open_undo_preview, stopped_with_everything
from tests.browser.visitor import Complaints, Visit, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.stack]

SCHEMES: list[Literal["light", "dark"]] = ["light", "dark"]
WIDTHS = [1280, 390]


def test_the_pages_around_runs(
    ana: User, at_desk: Visitor, visit: Visit, complaints: Complaints
) -> None:
    page = at_desk.page
    page.goto("/")
    must_be_accessible(page)  # no runs yet
    page.goto("/runs/new/?agent=inbox")
    must_be_accessible(page)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="Write what")).to_be_visible()
    must_be_accessible(page)  # with an error
    complaints.forgive("status of 40[04]")
    page.goto("/runs/")
    must_be_accessible(page)  # not found
    page.goto("/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    must_be_accessible(page)


def test_a_live_run(at_desk: Visitor) -> None:
    asking(at_desk)
    must_be_accessible(at_desk.page)


def test_a_stopped_run_and_its_undo(at_desk: Visitor, stack: Stack) -> None:
    page = at_desk.page
    run = stopped_with_everything(at_desk, stack)
    must_be_accessible(page)
    open_undo_preview(page)
    must_be_accessible(page)
    page.goto(f"{run.path}undo/")
    must_be_accessible(page)  # the preview as a page of its own
    page.goto("/")
    must_be_accessible(page)  # my runs, with one


def must_be_accessible(page: Page) -> None:
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
