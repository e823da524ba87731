"""390 px: no page scrolls sideways, and while a run acts, Stop is under the thumb."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from agentruns.services.stack import Stack
from tests.browser import standstills, tour
from tests.browser.visitor import PHONE, Complaints, Visit, Walk, stop_button

pytestmark = [pytest.mark.browser, pytest.mark.stack]

# What is wider than the page, apart from what scrolls within a box of its own.
TOO_WIDE = """() => document.documentElement.scrollWidth <= 390 ? [] :
  [...document.querySelectorAll("main *, header *, footer *")]
    .filter((each) => each.getBoundingClientRect().right > 390)
    .map((each) => each.outerHTML.slice(0, 120))"""
# Whether something that one can press is hidden behind the bar with Stop, at the end of the page.
COVERED = """() => {
  window.scrollTo(0, document.documentElement.scrollHeight);
  const bar = document.querySelector(".stopbox").getBoundingClientRect();
  return [...document.querySelectorAll("main a, main button, main input, footer button")]
    .filter((each) => !each.closest(".stopbox") && each.getBoundingClientRect().bottom > bar.top)
    .map((each) => each.outerHTML.slice(0, 120));
}"""


@pytest.mark.parametrize("walk", [tour.walk, *standstills.WALKS])
def test_everything_fits_on_a_phone(
    ana: User, visit: Visit, stack: Stack, complaints: Complaints, walk: Walk
) -> None:
    complaints.forgive("status of 40[04]")
    somebody = visit(ana, **PHONE)
    for name in walk(somebody, stack):
        must_fit(somebody.page, name)


def test_so_does_a_word_without_an_end(ana: User, visit: Visit) -> None:
    somebody = visit(ana, **PHONE)
    somebody.start("report", "token:1", goal="W" * 3000)
    somebody.page.get_by_text("The whole goal").click()
    must_fit(somebody.page, "a run with a long word for a goal")
    somebody.page.goto("/")
    must_fit(somebody.page, "the list with it")


def must_fit(page: Page, name: str) -> None:
    assert page.evaluate(TOO_WIDE) == [], name
    if page.locator("#run").count():
        expect(stop_button(page)).to_be_in_viewport(ratio=1)
        assert page.evaluate(COVERED) == [], name
        expect(stop_button(page)).to_be_in_viewport(ratio=1)
