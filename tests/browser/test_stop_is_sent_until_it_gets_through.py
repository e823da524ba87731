"""Stop while what stands behind the page is away: the page says so, and sends it again."""

from collections.abc import Iterator

import psycopg
import pytest
from playwright.sync_api import Page, Route, expect

from agentruns.services.stack import Stack
from tests.browser.visitor import Complaints, Visitor, badge, stop_button

pytestmark = [pytest.mark.browser, pytest.mark.stack]

UNCONFIRMED = "Stop is not confirmed yet. We keep sending it."


class Way:
    """The way of Stop from the page to the server; `troubles` meet the first attempts."""

    def __init__(self, page: Page, *troubles: int | str) -> None:
        self.attempts = 0
        self._troubles = list(troubles)
        self._hanging: list[Route] = []
        page.route("**/stop/", self._answer)

    def _answer(self, route: Route) -> None:
        self.attempts += 1
        trouble = self._troubles.pop(0) if self._troubles else None
        if trouble is None:
            route.continue_()
        elif trouble == "hangs":
            self._hanging.append(route)
        elif isinstance(trouble, int):
            route.fulfill(status=trouble, body="Bad Gateway", content_type="text/plain")
        else:
            route.abort(trouble)


@pytest.mark.parametrize("trouble", [500, 502, 503, 504, "connectionreset"])
def test_stop_is_sent_again_and_the_page_stays(
    at_desk: Visitor, complaints: Complaints, trouble: int | str
) -> None:
    complaints.forgive("Failed to load resource")
    page = at_desk.page
    run = at_desk.start("inbox", "token:12")
    expect(page.locator("#run-head")).to_contain_text("12 tokens")
    page.evaluate("window.isSame = true")
    way = Way(page, trouble, trouble)

    stop_button(page).click()

    expect(page.locator("#foresight")).to_contain_text(UNCONFIRMED)
    run.let_go("token:12")
    expect(badge(page)).to_contain_text("Stopped")
    expect(page.locator("#foresight")).not_to_contain_text(UNCONFIRMED)
    assert way.attempts == 3
    assert page.evaluate("window.isSame") is True


def test_a_stop_that_hangs_is_told_at_once_and_sent_again_by_itself(at_desk: Visitor) -> None:
    """L4."""
    page = at_desk.page
    run = at_desk.start("inbox", "token:12")
    expect(page.locator("#run-head")).to_contain_text("12 tokens")
    way = Way(page, "hangs", "hangs")

    stop_button(page).click()

    assert "Sending Stop" in stop_button(page).inner_text()
    place = stop_button(page).bounding_box()
    expect(page.locator("#foresight")).to_contain_text(UNCONFIRMED)
    assert stop_button(page).bounding_box() == place
    run.let_go("token:12")
    expect(badge(page)).to_contain_text("Stopped")
    expect(page.locator("#foresight")).not_to_contain_text(UNCONFIRMED)
    assert way.attempts == 3


def test_a_second_press_while_the_first_hangs_is_sent_at_once(at_desk: Visitor) -> None:
    """L4."""
    page = at_desk.page
    run = at_desk.start("inbox", "token:12")
    expect(page.locator("#run-head")).to_contain_text("12 tokens")
    way = Way(page, "hangs")

    stop_button(page).click()
    with page.expect_response("**/stop/", timeout=2000):  # sooner than by itself
        stop_button(page).click()

    run.let_go("token:12")
    expect(badge(page)).to_contain_text("Stopped")
    assert way.attempts == 2


@pytest.fixture
def takes_no_writes(stack: Stack) -> Iterator[psycopg.Connection]:
    """As after a failover: the database stays up and answers, and each write fails."""
    address = psycopg.conninfo.make_conninfo(
        stack.env["DATABASE_URL"], user="postgres", dbname="postgres"
    )
    with psycopg.connect(address, autocommit=True) as superuser:
        superuser.execute("SET default_transaction_read_only = off")
        superuser.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        try:
            yield superuser
        finally:
            superuser.execute("ALTER SYSTEM RESET default_transaction_read_only")
            superuser.execute("SELECT pg_reload_conf()")


def test_a_stop_during_a_failover_gets_through_once_it_is_over(
    at_desk: Visitor, complaints: Complaints, takes_no_writes: psycopg.Connection
) -> None:
    """N19: and meanwhile the page does not look merely live."""
    complaints.forgive("Failed to load resource")
    page = at_desk.page
    run = at_desk.start("inbox", "token:12")
    expect(page.locator("#run-head")).to_contain_text("12 tokens")
    takes_no_writes.execute("SELECT pg_reload_conf()")

    expect(page.locator("#live")).to_have_attribute("data-state", "away")
    stop_button(page).click()
    expect(page.locator("#foresight")).to_contain_text(UNCONFIRMED)

    takes_no_writes.execute("ALTER SYSTEM RESET default_transaction_read_only")
    takes_no_writes.execute("SELECT pg_reload_conf()")
    run.let_go("token:12")
    expect(badge(page)).to_contain_text("Stopped")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    expect(page.locator("#foresight")).not_to_contain_text(UNCONFIRMED)


def test_a_stop_that_is_refused_says_why_and_moves_nothing(
    at_desk: Visitor, complaints: Complaints
) -> None:
    complaints.forgive("Failed to load resource")
    page = at_desk.page
    run = at_desk.start("inbox", "token:12")
    expect(page.locator("#run-head")).to_contain_text("12 tokens")
    place = stop_button(page).bounding_box()
    at_desk.context.clear_cookies(name="csrftoken")
    page.evaluate("document.querySelector('form[data-stop] [name=csrfmiddlewaretoken]').value = 1")

    stop_button(page).click()

    expect(page.locator("#problem")).to_contain_text("nothing was done")
    expect(stop_button(page)).to_contain_text("Stop run")
    assert stop_button(page).bounding_box() == place
    stop_button(page).click()  # the page has looked anew meanwhile
    run.let_go("token:12")
    expect(badge(page)).to_contain_text("Stopped")
