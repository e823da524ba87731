"""Undo: ticked, foreseen, confirmed, and told step by step."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentruns.models import ToolCall
from agentruns.page.words import clock
from agentruns.planner.history import messages_of
from compensation.models import Compensation
from compensation.saga import run_next
from tests.agentruns.outside import Outside
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page, words
from tests.agentruns.steps import Steps, anew, now
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def landed(steps: Steps) -> list[ToolCall]:
    """A read, a booking and a post of a stopped run, all done."""
    run, calls = steps.running("test.note", "test.book", "test.post")
    calls = [steps.act(call) for call in calls]
    steps.stop(run)
    return [anew(call) for call in calls]


def confirm(client: Client, *calls: ToolCall) -> str:
    path = f"/runs/{calls[0].run_id}/undo/"
    return words(client.post(path, {"call": [call.pk for call in calls]}, follow=True).content)


def test_only_what_can_be_undone_can_be_ticked(
    landed: list[ToolCall], browser: Browser, owner: User
) -> None:
    note, book, post = landed
    text = browser(owner).get(f"/runs/{note.run_id}/").content.decode()
    ticks = [call.pk for call in landed if f'id="tick-{call.pk}"' in text]
    assert ticks == [book.pk, post.pk]
    assert "Only read: nothing to undo." in words(text)


def test_the_preview_says_each_consequence_in_the_order_of_undo(
    landed: list[ToolCall], browser: Browser, owner: User
) -> None:
    note, _book, _post = landed
    query = "&".join(f"call={call.pk}" for call in landed)
    said = page(browser(owner), f"/runs/{note.run_id}/undo/?{query}")
    post_at, book_at = said.index("The message is deleted"), said.index("The booking is cancelled")
    assert post_at < book_at
    assert "This stays as it is read “thing 0”" in said
    assert "Undo these 2 actions" in said
    assert not Compensation.objects.exists()


def test_the_preview_warns_of_what_was_done_later_and_may_build_on_it(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, calls = steps.running("test.book", "test.book")
    first, second = [steps.act(call) for call in calls]
    steps.stop(run)
    path = f"/runs/{run.pk}/undo/?call="
    said = page(browser(owner), path + first.pk)
    assert "This was done later, and stays: book “thing 1”." in said
    assert "done later" not in page(browser(owner), path + second.pk)
    assert "done later" not in page(browser(owner), f"{path}{first.pk}&call={second.pk}")


def test_a_confirmed_undo_is_told_until_it_is_done(
    landed: list[ToolCall], browser: Browser, owner: User, outside: Outside
) -> None:
    _note, book, _post = landed
    client = browser(owner)
    assert "Undoing: 0 of 1 done …" in confirm(client, book)
    run_next(book.run_id)
    said = page(client, f"/runs/{book.run_id}/")
    assert "One action is undone." in said
    assert "Three things happened. One of them has been undone." in said
    assert ("test.book", book.request_id) not in outside.effects


def test_taken_up_again_neither_people_nor_the_model_take_it_for_standing(
    landed: list[ToolCall], browser: Browser, owner: User, steps: Steps
) -> None:
    _note, book, post = landed
    client = browser(owner)
    confirm(client, book)
    run_next(book.run_id)
    steps.resume(now(book.run))

    said = page(client, f"/runs/{book.run_id}/")
    assert f"undone {clock(anew(book).undone_at)}" in said
    told = [part.content for part in messages_of(now(book.run))[2].parts]
    assert told[1].endswith("But it has been undone since.")
    assert "undone" not in told[2]
    assert anew(post).undo_state == ""


def test_confirmed_twice_it_is_undone_once(
    landed: list[ToolCall], browser: Browser, owner: User
) -> None:
    for _time in range(2):
        confirm(browser(owner), landed[1])
    assert Compensation.objects.count() == 1


def test_nothing_ticked_is_said_plainly(
    landed: list[ToolCall], browser: Browser, owner: User
) -> None:
    path = f"/runs/{landed[0].run_id}/undo/"
    assert "Tick what is to be undone" in page(browser(owner), path)
    assert browser(owner).post(path).status_code == 400


@pytest.mark.parametrize("query", ["call=call_nope", "call=%00"])
def test_a_call_that_is_not_of_this_run_is_refused(
    landed: list[ToolCall], browser: Browser, owner: User, query: str
) -> None:
    page(browser(owner), f"/runs/{landed[0].run_id}/undo/?{query}", 400)


def test_a_reviewer_sees_but_does_not_undo(
    landed: list[ToolCall], browser: Browser, reviewer: User
) -> None:
    client = browser(reviewer)
    assert "Undo what is ticked" not in page(client, f"/runs/{landed[0].run_id}/")
    path = f"/runs/{landed[0].run_id}/undo/"
    assert client.post(path, {"call": landed[1].pk}).status_code == 403
    assert not Compensation.objects.exists()


def test_while_the_run_acts_there_is_nothing_to_tick(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (book, _post) = steps.running("test.book", "test.post")
    steps.act(book)
    assert "Undo what is ticked" not in page(browser(owner), f"/runs/{run.pk}/")
    path = f"/runs/{run.pk}/undo/"
    assert browser(owner).post(path, {"call": book.pk}).status_code == 409


def test_a_tier_that_an_admin_tightened_does_not_deny_the_undo(
    steps: Steps, browser: Browser, owner: User
) -> None:
    Tool.objects.filter(name="test.post").update(tier="irreversible")
    run, (call,) = steps.running("test.post")
    steps.approve(call)
    steps.act(call)
    steps.stop(run)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "Undo: The message is deleted; people may have read it." in said
    assert "cannot be undone" not in said.lower()
