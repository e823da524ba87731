"""What cannot be undone: taken back while it is held, and followed by a correction after that."""

import html
import re

import pytest
from django.contrib.auth.models import User

from agentruns.models import ToolCall
from tests.agentruns.outside import Outside
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page
from tests.agentruns.steps import Steps, anew, pass_time

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def held(steps: Steps) -> ToolCall:
    _run, (call,) = steps.running("test.later")
    return steps.act(call)


def withhold(call: ToolCall) -> str:
    return f"/runs/{call.run_id}/calls/{call.pk}/withhold/"


def test_a_held_call_says_when_it_goes_and_is_taken_back_by_its_button(
    held: ToolCall, browser: Browser, owner: User, outside: Outside
) -> None:
    client, path = browser(owner), f"/runs/{held.run_id}/"
    said = page(client, path)
    assert "Not sent yet" in said
    assert "unless it is taken back or the run is stopped" in said
    assert f'action="{withhold(held)}"' in client.get(path).content.decode()

    answer = client.post(withhold(held), follow=True)
    assert "Taken back before it was sent" in answer.content.decode()
    assert "Don’t send it" not in answer.content.decode()
    assert outside.attempts == []


def test_what_has_left_meanwhile_is_not_taken_back(
    steps: Steps, held: ToolCall, browser: Browser, owner: User
) -> None:
    pass_time(held)
    steps.act(held)
    assert browser(owner).post(withhold(held)).status_code == 409
    assert anew(held).state == "landed"


@pytest.mark.parametrize(("who", "status"), [("reviewer", 403), ("outsider", 404)])
def test_only_who_may_stop_the_run_takes_it_back(
    held: ToolCall, browser: Browser, request: pytest.FixtureRequest, who: str, status: int
) -> None:
    person = request.getfixturevalue(who)
    assert browser(person).post(withhold(held)).status_code == status
    assert anew(held).state == "prepared"
    if who == "reviewer":
        assert "Don’t send it" not in page(browser(person), f"/runs/{held.run_id}/")


def test_a_correction_is_asked_for_as_a_run_of_its_own(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (call,) = steps.running("test.send")
    steps.approve(call)
    steps.act(call)
    steps.stop(run)

    client = browser(owner)
    text = client.get(f"/runs/{run.pk}/").content.decode()
    found = re.search(r'<a href="([^"]+)">Send it better</a>', text)
    assert found
    form = client.get(html.unescape(found[1])).content.decode()
    assert html.escape("Send “thing 0” & more, better") in form
    assert re.search(r'value="tester"[^>]*checked', form)


def test_what_can_be_undone_needs_no_correction(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (call,) = steps.running("test.book")
    steps.act(call)
    steps.stop(run)
    assert "Send it better" not in page(browser(owner), f"/runs/{run.pk}/")
