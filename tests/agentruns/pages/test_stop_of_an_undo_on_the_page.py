"""While an undo is under way it can be stopped; afterwards the page says what was undone."""

import pytest
from django.contrib.auth.models import User

from agentruns.models import Run, ToolCall
from compensation.saga import request_undo, run_next
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page, words
from tests.agentruns.steps import Steps, now
from tests.pausing import Pauses, in_background

pytestmark = pytest.mark.django_db(transaction=True)

BUTTON = "Stop undoing"


@pytest.fixture
def undoing(steps: Steps) -> Run:
    """Two bookings and a post of a stopped run, all to be undone."""
    run, calls = steps.running("test.book", "test.book", "test.post")
    for call in calls:
        steps.act(call)
    steps.stop(run)
    request_undo(run.pk, by=steps.owner, call_ids=[call.pk for call in calls])
    return now(run)


def press(browser: Browser, person: User, run: Run) -> str:
    answer = browser(person).post(f"/runs/{run.pk}/undo/stop/", follow=True)
    return words(answer.content)


def test_it_says_beforehand_what_it_will_do(
    undoing: Run, browser: Browser, owner: User, pauses: Pauses
) -> None:
    said = page(browser(owner), f"/runs/{undoing.pk}/")
    assert f"{BUTTON} 3 actions that still wait are left as they are." in said
    hold = pauses.hold(undoing.pk, "undo:3:started")
    with in_background(run_next, undoing.pk):
        hold.wait()
        said = page(browser(owner), f"/runs/{undoing.pk}/")
        hold.release()
    assert "The one that is being undone right now is finished. 2 actions" in said


def test_afterwards_it_says_what_was_undone_and_what_was_not(
    undoing: Run, browser: Browser, owner: User
) -> None:
    run_next(undoing.pk)
    said = press(browser, owner, undoing)
    assert "One action is undone." in said
    assert "Two were not undone, because Ana stopped the undo at" in said
    assert said.count("Not undone: the undo was stopped") == 2
    assert "Three things happened. One of them has been undone." in said
    assert BUTTON not in said
    assert "That stays unless it is undone." in said


def test_what_was_dropped_can_be_ticked_again(undoing: Run, browser: Browser, owner: User) -> None:
    press(browser, owner, undoing)
    text = browser(owner).get(f"/runs/{undoing.pk}/").content.decode()
    pks = ToolCall.objects.filter(run=undoing).values_list("pk", flat=True)
    assert all(f'id="tick-{pk}"' in text for pk in pks)


def test_too_late_it_changes_nothing(undoing: Run, browser: Browser, owner: User) -> None:
    while run_next(undoing.pk):
        pass
    said = press(browser, owner, undoing)
    assert "Three actions are undone." in said
    assert "stopped the undo" not in said


def test_who_may_not_undo_may_not_stop_it(undoing: Run, browser: Browser, reviewer: User) -> None:
    assert BUTTON not in page(browser(reviewer), f"/runs/{undoing.pk}/")
    assert browser(reviewer).post(f"/runs/{undoing.pk}/undo/stop/").status_code == 403


def test_a_stranger_does_not_even_learn_of_it(
    undoing: Run, browser: Browser, outsider: User
) -> None:
    assert browser(outsider).post(f"/runs/{undoing.pk}/undo/stop/").status_code == 404
