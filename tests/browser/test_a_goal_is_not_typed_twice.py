"""What somebody typed is still there after an answer that did not come, or was a refusal."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, expect

from agentruns.models import Run
from agentruns.services.stack import Stack
from tests.browser.visitor import Complaints, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.stack]

GOAL = "Write to everybody who was at the review,\nand thank them."


def refused(visitor: Visitor) -> str:
    """A goal was sent from a page whose token holds no more; returns the form's key."""
    page = visitor.page
    page.goto("/runs/new/?agent=report")
    goal(visitor).fill(GOAL)
    key = page.locator("input[name=key]").input_value()
    visitor.context.clear_cookies(name="csrftoken")
    press(visitor)
    expect(page.get_by_text("open for too long")).to_be_visible()
    page.goto("/runs/new/")
    return key


def goal(visitor: Visitor) -> Locator:
    return visitor.page.get_by_label("What should it do?")


def note(visitor: Visitor) -> Locator:
    return visitor.page.get_by_text("what you last sent")


def press(visitor: Visitor) -> None:
    visitor.page.get_by_role("button", name="Start", exact=True).click()


def test_it_is_there_after_a_refusal_and_starts_one_run(
    at_desk: Visitor, complaints: Complaints
) -> None:
    complaints.forgive("403")
    key = refused(at_desk)

    page = at_desk.page
    expect(goal(at_desk)).to_have_value(GOAL)
    expect(note(at_desk)).to_be_visible()
    assert page.locator("input[name=key]").input_value() == key
    assert page.locator("input[name=agent]:checked").input_value() == "report"

    press(at_desk)
    page.wait_for_url("**/runs/run_*/")
    started = Run.objects.get(owner=at_desk.user).goal
    assert started.splitlines() == GOAL.splitlines()  # a form ends its lines by two signs
    page.goto("/runs/new/")
    expect(goal(at_desk)).to_have_value("")
    expect(note(at_desk)).to_be_hidden()


def test_an_example_takes_no_place_of_what_was_written(at_desk: Visitor) -> None:
    page = at_desk.page
    page.goto("/runs/new/")
    example = page.get_by_role("button", name="Use this example").first
    example.click()
    expect(goal(at_desk)).not_to_have_value("")
    goal(at_desk).fill(GOAL)
    example.click()
    expect(page.get_by_text("What you wrote is still here")).to_be_visible()
    expect(goal(at_desk)).to_have_value(GOAL)


def test_nobody_who_signs_in_next_reads_it(
    at_desk: Visitor, oto: User, stack: Stack, complaints: Complaints
) -> None:
    complaints.forgive("403")
    refused(at_desk)

    Visitor(oto, at_desk.context, stack).sign_in()
    for _time in range(2):
        at_desk.page.goto("/runs/new/")
        expect(goal(at_desk)).to_have_value("")


def test_it_goes_with_who_signs_out(at_desk: Visitor, complaints: Complaints) -> None:
    complaints.forgive("403")
    at_desk.page.goto("/runs/new/?agent=report")
    goal(at_desk).fill(GOAL)
    at_desk.context.clear_cookies(name="csrftoken")
    press(at_desk)
    expect(at_desk.page.get_by_text("open for too long")).to_be_visible()
    at_desk.page.goto("/")
    at_desk.page.get_by_role("button", name="Sign out").click()
    at_desk.page.wait_for_url("**/sign-in/")
    assert at_desk.page.evaluate("sessionStorage.getItem('typed')") is None
