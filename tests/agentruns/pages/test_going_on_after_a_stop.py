"""Continue: what it will do, what has to come first, and that the earlier stop stays readable."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agentruns.models import Run
from agentruns.protocol.resume import resume_run
from tests.agentruns.outside import Outside
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page, words
from tests.agentruns.pages.sockets import OpenPage, do, play
from tests.agentruns.steps import Steps, anew, now
from tests.forging import rewrite
from tests.pausing import at_once

CAN_PRESS = re.compile(r'<button type="submit" class="btn main">Continue</button>')


def test_the_page_is_live_again_and_the_stop_stays_readable(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, _calls = steps.running("test.book")
    steps.stop(run, reason="wrong day")
    client = browser(owner)
    said = page(client, f"/runs/{run.pk}/")
    assert "Continue: the agent starts anew from here." in said

    said = words(client.post(f"/runs/{run.pk}/resume/", follow=True).content)

    assert "Stop run" in said
    assert "Earlier stops Stopped by Ana at" in said
    assert "“wrong day”" in said
    assert "continued by Ana at" in said
    assert "It was about to act: what had not started was dropped." in said


def test_a_page_that_shows_an_earlier_stop_does_not_undo_a_later_one(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run = steps.start()
    steps.stop(run)
    client = browser(owner)
    old = client.get(f"/runs/{run.pk}/").content.decode()
    (epoch,) = re.findall(r'name="epoch" value="(\d+)"', old)
    assert client.post(f"/runs/{run.pk}/resume/", {"epoch": epoch}).status_code == 302
    steps.stop(now(run))

    answer = client.post(f"/runs/{run.pk}/resume/", {"epoch": epoch})

    assert answer.status_code == 409
    assert now(run).status == "stopped_clean"


@pytest.mark.breaks_ledger
def test_a_run_that_was_taken_up_just_now_is_not_said_to_lack_a_worker(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, _calls = steps.running("test.book")
    rewrite(Run.objects.filter(pk=run.pk), created_at=timezone.now() - timedelta(hours=1))
    steps.stop(run)
    client = browser(owner)
    said = words(client.post(f"/runs/{run.pk}/resume/", follow=True).content)
    assert "Waiting to start" in said
    assert "No worker has taken up" not in said


def test_its_end_is_not_told_as_a_stop(steps: Steps, browser: Browser, owner: User) -> None:
    run = stopped_and_continued(steps, owner)
    steps.turn(run)
    assert now(run).status == "completed"
    text = browser(owner).get(f"/runs/{run.pk}/").content.decode()
    said = words(text)
    assert "It finished. Nothing happened. One never started." in said
    assert "What Stop did not do" not in said
    assert "Earlier stops" in said
    assert text.count('class="mark is-stop"') == text.count('class="mark is-again"') == 2


def test_a_second_stop_has_a_verdict_of_its_own(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run = stopped_and_continued(steps, owner)
    lease = steps.think(run)
    steps.stop(run)
    steps.give_back(lease)
    text = browser(owner).get(f"/runs/{run.pk}/").content.decode()
    said = words(text)
    assert said.index("The model was at work: what it had") < said.index("Earlier stops")
    assert said.count("Cut off here when you pressed Stop.") == 1
    assert text.count('class="mark is-stop"') == 4  # two, in a wide and in a narrow picture


def test_it_cannot_be_pressed_while_anything_is_in_doubt(
    steps: Steps, browser: Browser, owner: User, outside: Outside
) -> None:
    outside.answers["test.post"] = "lost"
    run, (message,) = steps.running("test.post")
    steps.act(message)
    steps.stop(run)
    client = browser(owner)
    text = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Not yet: first it has to be known what became of 1 action." in words(text)
    assert not CAN_PRESS.search(text)
    assert client.post(f"/runs/{run.pk}/resume/").status_code == 409
    client.post(f"/runs/{run.pk}/calls/{message.pk}/answer/", {"answer": "happened"})
    assert CAN_PRESS.search(client.get(f"/runs/{run.pk}/").content.decode())


@pytest.mark.parametrize(("frozen", "state"), [("release", "approved"), ("void", "voided")])
def test_what_was_held_back_is_kept_or_dropped(
    steps: Steps, browser: Browser, owner: User, frozen: str, state: str
) -> None:
    run, (book,) = steps.running("test.book")
    steps.stop(run, pending="freeze")
    client = browser(owner)
    said = page(client, f"/runs/{run.pk}/")
    assert "1 action was held back. What becomes of it?" in said
    assert "what had not started was held back for a person" in said
    assert client.post(f"/runs/{run.pk}/resume/").status_code == 400  # nothing was chosen

    client.post(f"/runs/{run.pk}/resume/", {"frozen": frozen})

    assert anew(book).state == state


def test_pressed_twice_it_goes_on_once(steps: Steps, browser: Browser, owner: User) -> None:
    run, _calls = steps.running("test.book")
    steps.stop(run)
    client = browser(owner)
    for _time in range(2):
        assert client.post(f"/runs/{run.pk}/resume/", follow=True).status_code == 200
    assert now(run).epoch == 3


def test_pressed_by_several_at_once_too(
    steps: Steps, browser: Browser, owner: User, admin: User
) -> None:
    run, _calls = steps.running("test.book")
    steps.stop(run)
    clients = [browser(person) for person in (owner, admin) * 3]
    answers = at_once([lambda c=c: c.post(f"/runs/{run.pk}/resume/") for c in clients])
    assert {answer.status_code for answer in answers} == {302}
    assert now(run).epoch == 3


def test_a_reviewer_is_not_offered_it(steps: Steps, browser: Browser, reviewer: User) -> None:
    run, _calls = steps.running("test.book")
    steps.stop(run)
    client = browser(reviewer)
    assert "What next?" not in page(client, f"/runs/{run.pk}/")
    assert client.post(f"/runs/{run.pk}/resume/").status_code == 403


def test_every_open_page_is_live_again(steps: Steps, owner: User) -> None:
    run, _calls = steps.running("test.book")
    steps.stop(run)

    async def story() -> None:
        async with OpenPage(run, owner) as other:
            await other.hear("state")
            await do(resume_run, run.pk, by=owner, frozen="void")
            state = await other.read_until("Earlier stops")
            assert state["phase"] == "live"
            assert state["order"] == ["answer", "actions", "earlier"]

    play(story)


def stopped_and_continued(steps: Steps, owner: User) -> Run:
    run, _calls = steps.running("test.book")
    steps.stop(run)
    return resume_run(run.pk, by=owner, frozen="void")
