"""Stop has one place, and is in sight: on a desk and on a phone, in every phase."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.browser.visitor import PHONE, Visit, badge, call, notice, stop_button, verdict

pytestmark = [pytest.mark.browser, pytest.mark.stack]

# Whether the button is what one hits in its middle: nothing lies over it.
ON_TOP = """button => {
  const { x, y, width, height } = button.getBoundingClientRect();
  return button.contains(document.elementFromPoint(x + width / 2, y + height / 2));
}"""


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_stop_stays_where_it_is(ana: User, visit: Visit, options: dict[str, Any]) -> None:
    somebody = visit(ana, **options)
    page = somebody.page
    run = somebody.start("inbox", "token:8", "call:3:gate")
    expect(page.locator("#run-head")).to_contain_text("8 tokens")
    places = [place_of_stop(page)]
    run.let_go("token:8")
    mail = call(page, "Mail “Q3 review on Tuesday”")
    expect(mail).to_contain_text("Needs approval")
    expect(call(page, "Meeting")).to_contain_text("Done")
    places.append(place_of_stop(page))
    mail.get_by_role("button", name="Approve").scroll_into_view_if_needed()
    must_be_in_sight(page)
    page.mouse.wheel(0, 5000)
    must_be_in_sight(page)
    mail.get_by_role("button", name="Approve").click()
    expect(mail).to_contain_text("Leaving now")
    places.append(place_of_stop(page))
    page.get_by_role("button", name="Pause").click()
    expect(notice(page, "paused")).to_contain_text("1 action is still under way.")
    places.append(place_of_stop(page))

    stop_button(page).click()
    expect(verdict(page)).to_contain_text("in flight")
    places.append(place_of_stop(page))
    run.let_go("call:3:gate")
    expect(badge(page)).to_contain_text("Stopped")
    places.append(place_of_stop(page))
    assert len(set(places)) == 1, places


def place_of_stop(page: Page) -> tuple[int, ...]:
    """Where the button is, once one has scrolled to the top."""
    page.evaluate("window.scrollTo(0, 0)")
    must_be_in_sight(page)
    box = stop_button(page).bounding_box()
    assert box is not None
    return tuple(round(box[side]) for side in ("x", "y", "width", "height"))


def must_be_in_sight(page: Page) -> None:
    expect(stop_button(page)).to_be_in_viewport(ratio=1)
    assert stop_button(page).evaluate(ON_TOP)
