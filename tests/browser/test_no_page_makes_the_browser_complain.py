"""No error of a script, of the content policy or of the network, on any page, for anybody.

Every test here hears that at its end; this one opens the pages that no other one does.
"""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from agentruns import demo
from tests.browser.visitor import Complaints, Visit, Visitor, badge

pytestmark = [pytest.mark.browser, pytest.mark.stack]

PATHS = ["/", "/?show=failed", "/?scope=all", "/?page=99", "/runs/new/", "/admin/", "/api/docs/"]


def test_pages_of_people_with_every_right(at_desk: Visitor, visit: Visit) -> None:
    run = at_desk.start("report")
    expect(badge(at_desk.page)).to_contain_text("Finished")
    admin = visit(demo.person("root", "Ada", "Lind", administers=True))
    for path in [*PATHS, run.path]:
        loaded = admin.page.goto(path)
        assert loaded is not None
        assert loaded.ok, path
        expect(admin.page.locator("body")).not_to_be_empty()


def test_other_languages_and_looks(at_desk: Visitor) -> None:
    page = at_desk.page
    page.goto("/")
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    page.get_by_role("button", name="English").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Light").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_a_complaint_would_be_heard(ana: User, visit: Visit, complaints: Complaints) -> None:
    """The content policy is there, and what breaks it does not get past these tests."""
    page = visit(ana).page
    page.goto("/")
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.wasRun = true";
          document.body.append(script);
          setTimeout(() => { throw new Error("thrown on purpose") });
        }"""
    )
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert page.evaluate("window.wasRun") is None
    assert len(complaints.left) == 2
    complaints.forgive("Content Security Policy")
    complaints.forgive("thrown on purpose")
