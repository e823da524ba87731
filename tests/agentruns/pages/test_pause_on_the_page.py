"""Pause beside Stop: nothing new starts, and the page says by whom, and what is still under way."""

from django.contrib.auth.models import User

from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_landed
from agentruns.protocol.pause import pause_run, unpause_run
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page, words
from tests.agentruns.pages.sockets import OpenPage, do, play
from tests.agentruns.steps import Steps, anew, now
from tools.contract import Receipt


def test_a_run_is_paused_and_goes_on(steps: Steps, browser: Browser, owner: User) -> None:
    run, (book,) = steps.running("test.book")
    client = browser(owner)
    assert "Pause" in page(client, f"/runs/{run.pk}/")

    said = words(client.post(f"/runs/{run.pk}/pause/", follow=True).content)

    assert "Paused by Ana at" in said
    assert "nothing new starts. Continue" in said
    assert "Stop run" in said
    assert "On hold" in said
    assert anew(book).state == "approved"

    said = words(client.post(f"/runs/{run.pk}/unpause/", follow=True).content)
    assert "Paused" not in said
    assert now(run).status == "running"


def test_what_is_under_way_is_said_to_go_on(steps: Steps, browser: Browser, owner: User) -> None:
    run, (book, _post) = steps.running("test.book", "test.post")
    claim = steps.claim(book)
    assert pass_gate(claim)
    pause_run(run.pk, by=owner)
    client = browser(owner)
    said = page(client, f"/runs/{run.pk}/")
    assert "nothing new starts. 1 action is still under way." in said
    record_landed(claim, Receipt({}, "Done."))
    assert "still under way" not in page(client, f"/runs/{run.pk}/")


def test_the_answer_is_said_to_be_written_to_its_end(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run = steps.start()
    lease = steps.think(run)
    pause_run(run.pk, by=owner, reason="one moment")
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "(“one moment”): nothing new starts." in said
    assert "The agent still writes this answer to its end." in said
    steps.finish(lease)


def test_pressed_twice_or_too_late_it_does_no_harm(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, _calls = steps.running("test.book")
    client = browser(owner)
    for verb in ("unpause", "pause", "pause"):
        assert client.post(f"/runs/{run.pk}/{verb}/", follow=True).status_code == 200
    steps.stop(run)
    for verb in ("pause", "unpause"):
        said = words(client.post(f"/runs/{run.pk}/{verb}/", follow=True).content)
        assert "Nothing happened. One never started." in said


def test_only_who_may_stop_may_pause(steps: Steps, browser: Browser, reviewer: User) -> None:
    run, _calls = steps.running("test.book")
    client = browser(reviewer)
    text = client.get(f"/runs/{run.pk}/").content.decode()
    assert "/pause/" not in text
    assert client.post(f"/runs/{run.pk}/pause/").status_code == 403
    assert now(run).status == "running"


def test_who_may_not_continue_it_reads_that_it_is_paused(
    steps: Steps, browser: Browser, owner: User, reviewer: User
) -> None:
    run, _calls = steps.running("test.book")
    pause_run(run.pk, by=owner)
    text = browser(reviewer).get(f"/runs/{run.pk}/").content
    assert "Paused by Ana" in words(text)
    assert b"/unpause/" not in text


def test_a_pause_is_seen_in_every_open_page(steps: Steps, owner: User) -> None:
    run, _calls = steps.running("test.book")

    async def story() -> None:
        async with OpenPage(run, owner) as other:
            await other.hear("state")
            await do(pause_run, run.pk, by=owner)
            state = await other.read_until("Paused by Ana")
            assert state["phase"] == "live"
            await do(unpause_run, run.pk, by=owner)
            state = await other.read_until("Running")
            assert "notice" not in state["order"]

    play(story)
