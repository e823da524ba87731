"""Stop, as a person presses it: a plain form, one truth for everybody."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentruns.models import Run, StopRequest
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_landed
from tests.agentruns.outside import Outside
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import numbers, page, words
from tests.agentruns.steps import Steps, anew, now
from tools.contract import Receipt

pytestmark = pytest.mark.django_db(transaction=True)


def press(client: Client, run: Run) -> str:
    """Press Stop; returns the page that it leads to."""
    answer = client.post(f"/runs/{run.pk}/stop/", follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_button_says_beforehand_what_it_will_do(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (book, _post) = steps.running("test.book", "test.post")
    steps.act(book)
    text = page(browser(owner), f"/runs/{run.pk}/")
    assert "Stop run" in text
    assert "If you stop now: 1 drafted action will be dropped. 1 action is done" in text


def test_it_does_not_say_that_nothing_was_done_after_something_was(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (note, send) = steps.running("test.note", "test.send")
    steps.act(note)
    assert "1 drafted action will be dropped." in page(browser(owner), f"/runs/{run.pk}/")
    steps.act(steps.approve(send))
    text = page(browser(owner), f"/runs/{run.pk}/")
    assert "If you stop now: 1 action is done and cannot be undone." in text
    assert "nothing has been changed" not in text


def test_stop_works_without_javascript_and_counts_what_happened(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (note, _book, _send) = steps.running("test.note", "test.book", "test.send")
    steps.act(note)
    text = press(browser(owner), run)
    assert "Nothing was changed. One thing was looked up. Two never started." in words(text)
    assert numbers(text) == {
        "done": 1, "in_doubt": 0, "never_started": 2, "failed": 0, "in_flight": 0,
    }  # fmt: skip
    assert "3 actions in all" in words(text)


def test_the_numbers_are_the_ledger_while_something_is_in_flight(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (book, _post) = steps.running("test.book", "test.post")
    claim = steps.claim(book)
    assert pass_gate(claim)
    text = press(browser(owner), run)
    said = words(text)
    assert "Stopping: 1 action in flight …" in said
    assert "Stopped" not in said.split("Stop requested by")[0]
    assert numbers(text)["in_flight"] == 1
    record_landed(claim, Receipt({}, "Done."))
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "One thing happened. One never started." in said
    assert "before Stop, arrived" in said


def test_stop_before_the_first_word(steps: Steps, browser: Browser, owner: User) -> None:
    run = steps.start()
    said = words(press(browser(owner), run))
    assert "Stopped before anything happened." in said
    assert "Stopped before any output." in said


def test_what_was_cut_off_is_marked(steps: Steps, browser: Browser, owner: User) -> None:
    run = steps.start()
    lease = steps.think(run)
    assert "the model is being cut off" in words(press(browser(owner), run))
    steps.give_back(lease)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "Cut off here when you pressed Stop. This part is incomplete." in said
    assert "the model was cut off: 9 tokens written" in said


def test_pressed_again_it_is_the_same_stop(steps: Steps, browser: Browser, owner: User) -> None:
    run = steps.start()
    first, second = (words(press(browser(owner), run)) for _time in range(2))
    assert first == second
    assert StopRequest.objects.count() == 1


def test_pressed_too_late_it_says_who_was_first(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, _calls = steps.running()
    said = words(press(browser(owner), run))
    assert "before your stop, which changed nothing." in said
    assert now(run).status == "completed"


def test_pressed_too_late_it_still_ends_what_the_run_had_started(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run = steps.start()
    lease = steps.think(run)
    child = steps.start(parent_id=run.pk)
    steps.finish(lease)
    said = words(press(browser(owner), run))
    assert "before your stop, which ended 1 run that it had started." in said
    assert now(child).status == "stopped_clean"


def test_what_was_found_out_after_the_stop_is_not_said_to_have_arrived_then(
    steps: Steps, browser: Browser, owner: User, outside: Outside
) -> None:
    outside.answers["test.book"] = "lost"
    run, (book,) = steps.running("test.book")
    steps.act(book)
    press(browser(owner), run)
    steps.look_up(anew(book))
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "before Stop, known to have happened" in said
    assert "before Stop, arrived" not in said


def test_an_admin_stops_the_run_of_somebody_else_under_their_own_name(
    steps: Steps, browser: Browser, admin: User
) -> None:
    run = steps.start()
    assert "Stop requested by Ada, as admin" in words(press(browser(admin), run))


def test_a_reviewer_may_look_but_not_stop(steps: Steps, browser: Browser, reviewer: User) -> None:
    run = steps.start()
    client = browser(reviewer)
    assert "Only Ana or an admin can stop it." in page(client, f"/runs/{run.pk}/")
    answer = client.post(f"/runs/{run.pk}/stop/")
    assert answer.status_code == 403
    assert now(run).status == "queued"


def test_for_an_outsider_the_run_is_not_there(
    steps: Steps, browser: Browser, outsider: User
) -> None:
    run = steps.start()
    client = browser(outsider)
    unknown = "/runs/run_00000000000000000000000000/"
    assert page(client, f"/runs/{run.pk}/", 404) == page(client, unknown, 404)
    for verb in ("stop", "undo"):
        assert client.post(f"/runs/{run.pk}/{verb}/").status_code == 404
    assert now(run).status == "queued"


@pytest.mark.parametrize("path", ["/runs/x/", "/runs/run_%00/", "/runs/run_0/stop/"])
def test_an_address_that_cannot_be_a_run(browser: Browser, owner: User, path: str) -> None:
    assert "There is nothing here by that name" in page(browser(owner), path, 404)


def test_a_forged_stop_stops_nothing(steps: Steps, owner: User) -> None:
    run = steps.start()
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    answer = client.post(f"/runs/{run.pk}/stop/")
    assert answer.status_code == 403
    assert "nothing was done" in words(answer.content)
    assert now(run).status == "queued"


def test_in_doubt_comes_first_with_its_one_question(
    steps: Steps, browser: Browser, owner: User, outside: Outside
) -> None:
    outside.answers["test.book"] = "lost"
    run, (note, book) = steps.running("test.note", "test.book")
    steps.act(note)
    steps.act(book)
    said = words(press(browser(owner), run))
    assert "One thing was looked up. One is in doubt." in said
    assert "Stopped, one thing in doubt" in said
    assert said.index("Did this happen?") < said.index("in the order in which it happened")
