"""What could not be undone waits for a person's word, given on the page with a reason (R43)."""

import pytest
from django.contrib.auth.models import User

from agentruns.models import ToolCall
from compensation.models import Compensation
from compensation.saga import request_undo, run_next
from tests.agentruns.outside import Outside
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page, words
from tests.agentruns.steps import Steps, anew

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "This was not undone. What becomes of it?"


@pytest.fixture
def changed(steps: Steps, outside: Outside) -> ToolCall:
    """A booking that somebody changed since, and so was left alone; an earlier one was undone."""
    run, calls = steps.running("test.book", "test.book")
    for call in calls:
        steps.act(call)
    steps.stop(run)
    request_undo(run.pk, by=steps.owner, call_ids=[call.pk for call in calls])
    outside.answers["undo"] = ["changed"]
    while run_next(run.pk):
        pass
    return anew(calls[1])


def address(call: ToolCall) -> str:
    return f"/runs/{call.run_id}/undo/{Compensation.objects.get(call=call).pk}/settle/"


def settle(browser: Browser, person: User, call: ToolCall, answer: str, reason: str) -> str:
    data = {"answer": answer, "reason": reason}
    return words(browser(person).post(address(call), data, follow=True).content)


def test_the_page_asks_what_becomes_of_it(changed: ToolCall, browser: Browser, owner: User) -> None:
    said = page(browser(owner), f"/runs/{changed.run_id}/")
    assert said.count(QUESTION) == 1
    assert "It says something else now." in said
    assert "One action is undone. One could not be undone: see below." in said


def test_while_the_rest_goes_on_it_says_that_it_does(
    steps: Steps, outside: Outside, browser: Browser, owner: User
) -> None:
    run, calls = steps.running("test.book", "test.book")
    for call in calls:
        steps.act(call)
    steps.stop(run)
    request_undo(run.pk, by=owner, call_ids=[call.pk for call in calls])
    outside.answers["undo"] = ["impossible"]
    run_next(run.pk)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "Undoing: 1 of 2 done … What could not be undone does not hold up the rest." in said


def test_undone_by_hand_is_told_with_name_and_reason(
    changed: ToolCall, browser: Browser, admin: User
) -> None:
    said = settle(browser, admin, changed, "undone", "I have called the hotel.")
    assert "by hand, by Ada: “I have called the hotel.”" in said
    assert "One action is undone. One was undone by hand." in said
    assert "Two things happened. All have been undone." in said
    assert QUESTION not in said


def test_left_as_it_is_is_told_with_name_and_reason(
    changed: ToolCall, browser: Browser, owner: User
) -> None:
    said = settle(browser, owner, changed, "leave", "We need the room.")
    assert "Ana left it as it is, at" in said
    assert "“We need the room.”" in said
    assert "One action is undone. One was left as it is." in said
    assert "Two things happened. One of them has been undone." in said
    assert QUESTION not in said


def test_pressed_twice_it_is_settled_once(changed: ToolCall, browser: Browser, owner: User) -> None:
    for _time in range(2):
        settle(browser, owner, changed, "undone", "By hand.")
    assert ToolCall.objects.filter(run=changed.run_id, undo_state="undone").count() == 2


def test_without_a_reason_nothing_is_settled(
    changed: ToolCall, browser: Browser, owner: User
) -> None:
    answer = browser(owner).post(address(changed), {"answer": "undone", "reason": " "})
    assert answer.status_code == 400
    assert anew(changed).undo_state == ""


def test_a_reviewer_sees_that_it_waits_and_does_not_settle(
    changed: ToolCall, browser: Browser, reviewer: User
) -> None:
    said = page(browser(reviewer), f"/runs/{changed.run_id}/")
    assert "It waits for the owner or an admin to say." in said
    answer = browser(reviewer).post(address(changed), {"answer": "undone", "reason": "Mine."})
    assert answer.status_code == 403


def test_a_step_of_another_run_is_not_found(
    changed: ToolCall, browser: Browser, owner: User, steps: Steps
) -> None:
    other, _calls = steps.running("test.book")
    path = address(changed).replace(changed.run_id, other.pk)
    answer = browser(owner).post(path, {"answer": "undone", "reason": "Mine."})
    assert answer.status_code == 404
