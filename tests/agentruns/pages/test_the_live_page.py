"""The live page: for those who may see the run, complete after every loss, harmed by nobody."""

import json
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.contrib.auth.models import User

from agentruns import consumers
from agentruns.doorbell import run_group
from agentruns.models import Output, Run
from agentruns.protocol.lease import Fragment, renew_lease
from agentruns.protocol.stop import request_stop
from tests.agentruns.pages.sockets import OpenPage, do, play
from tests.agentruns.steps import Steps

pytestmark = pytest.mark.django_db(transaction=True)
UNKNOWN = "run_00000000000000000000000000"


def test_the_owner_a_reviewer_and_an_admin_get_the_whole_page(
    steps: Steps, owner: User, reviewer: User, admin: User
) -> None:
    run = steps.start()

    async def story() -> None:
        for person in (owner, reviewer, admin):
            async with OpenPage(run, person) as page:
                state = await page.hear("state")
                assert state["order"] == ["answer", "actions"]
                assert set(state["html"]) == {"head", "stopbox", "answer", "actions"}

    play(story)


@pytest.mark.parametrize("who", ["outsider", "nobody", "left"])
def test_others_are_not_let_in(steps: Steps, owner: User, outsider: User, who: str) -> None:
    run = steps.start()
    people: dict[str, User | None] = {"outsider": outsider, "nobody": None, "left": owner}
    page = OpenPage(run, people[who])
    if who == "left":
        User.objects.filter(pk=owner.pk).update(is_active=False)

    async def story() -> None:
        async with page:
            assert not page.is_let_in

    play(story)


def test_a_run_that_is_not_there_looks_like_one_that_is_not_yours(owner: User) -> None:
    async def story() -> None:
        async with OpenPage(UNKNOWN, owner) as page:
            assert not page.is_let_in

    play(story)


def test_stop_in_one_tab_is_seen_in_the_other(steps: Steps, owner: User) -> None:
    run, _calls = steps.running("test.send")

    async def story() -> None:
        async with OpenPage(run, owner) as one, OpenPage(run, owner) as other:
            await one.hear("state")
            await other.hear("state")
            await do(request_stop, run.pk, by=owner)
            for page in (one, other):
                state = await page.read_until("Nothing happened. One never started.")
                assert state["phase"] == "over"
                assert "actions" not in page.html

    play(story)


def test_only_what_changed_is_sent(steps: Steps, owner: User) -> None:
    run = steps.start()
    lease = steps.think(run)

    async def story() -> None:
        async with OpenPage(run, owner) as page:
            await page.hear("state")
            await do(steps.propose, lease, "test.book", "the room")
            state = await page.read_until("book “the room”")
            assert "head" not in state["html"]
            assert "actions" in state["html"]

    play(story)


@pytest.mark.parametrize(
    "query", ["", "seq=0", "seq=4", "seq=999999", "seq=x&lang=%00", "lang=zh-Hans"]
)
def test_whoever_comes_back_gets_everything(steps: Steps, owner: User, query: str) -> None:
    """G1: whatever the last thing was that a page had seen, there is no hole afterwards."""
    run, calls = steps.running("test.note", "test.book")
    for call in calls:
        steps.act(call)

    async def story() -> None:
        async with OpenPage(run, owner, query=query) as page:
            state = await page.hear("state")
            assert state["seq"] == (await do(Run.objects.get, pk=run.pk)).ledger_seq
            assert all(call.pk in page.html["actions"] for call in calls)

    play(story)


def test_a_page_heals_when_every_doorbell_was_lost(
    steps: Steps, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C10: nobody rings, and the page still comes to show the stop."""
    monkeypatch.setattr(consumers, "LOOK_AGAIN", 0.1)
    run = steps.start()

    async def story() -> None:
        async with OpenPage(run, owner) as page:
            await page.hear("state")
            await get_channel_layer().flush()  # nobody is in any group any more
            await do(request_stop, run.pk, by=owner)
            await page.read_until("Stopped before anything happened.")

    play(story)


def test_a_page_is_live_enough_while_redis_is_away(
    steps: Steps, owner: User, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """R82: without doorbells it looks now and then; Stop and its truth come through."""
    monkeypatch.setattr(consumers, "LOOK_AGAIN", 0.1)
    layer = settings.CHANNEL_LAYERS["default"]
    nowhere = {**layer, "CONFIG": {**layer["CONFIG"], "hosts": ["redis://127.0.0.1:1"]}}
    settings.CHANNEL_LAYERS = {"default": nowhere}
    run = steps.start()

    async def story() -> None:
        async with OpenPage(run, owner) as page:
            await page.hear("state")
            await do(request_stop, run.pk, by=owner)
            await page.read_until("Stopped before anything happened.")

    play(story)


def test_text_goes_on_where_it_was_without_doubles_or_holes(steps: Steps, owner: User) -> None:
    run = steps.start()
    lease = steps.think(run)
    text = "I’ll write to Bo 🙂 and then to Ana."
    pieces: list[tuple[int, int]] = [(0, 5), (0, 12), (5, 18), (12, 25), (18, len(text))]

    async def story() -> None:
        async with OpenPage(run, owner) as page:
            await page.hear("state")
            shown = ""
            for start, end in pieces:
                await _publish(run.pk, lease.output_id, start, text[start:end])
                delta = await page.hear("text")
                assert delta["offset"] <= len(shown)
                shown = shown[: delta["offset"]] + delta["text"]
                assert text.startswith(shown)
            assert shown == text

    play(story)


def test_new_text_with_markup_is_drawn_a_little_later(
    steps: Steps, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "TEXT_APART", 0.01)
    run = steps.start()
    lease = steps.think(run)

    async def story() -> None:
        async with OpenPage(run, owner) as page:
            await page.hear("state")
            await do(renew_lease, lease, Fragment("**Yes**", 1, 1))
            await _publish(run.pk, lease.output_id, 0, "**Yes**")
            await page.read_until("<strong>Yes</strong>")
            assert 'data-start="7"' in "".join(page.html.values())

    play(story)


async def _publish(run_id: str, output: int, offset: int, text: str) -> None:
    message = {"type": "run.text", "output": output, "offset": offset, "text": text}
    await get_channel_layer().group_send(run_group(run_id), message)


@pytest.mark.parametrize(
    "message",
    [
        "hello",
        "{",
        "[]",
        "null",
        '{"type": "stop"}',
        '{"type": ["refresh"]}',
        "[" * 900,
        "x" * 100_000,
        json.dumps({"type": "run.changed"}),
        b"\x00\xff",
    ],
)
def test_a_message_that_is_not_ours_is_answered_and_changes_nothing(
    steps: Steps, owner: User, message: Any
) -> None:
    run = steps.start()

    async def story() -> None:
        async with OpenPage(run, owner) as page, OpenPage(run, owner) as other:
            await page.hear("state")
            await other.hear("state")
            await page.say(message)
            error = await page.hear("error")
            assert error["code"] == "unknown_message"
            assert "Traceback" not in json.dumps(error)
            await page.say('{"type": "refresh"}')
            await page.hear("state")  # still alive, and so is the other
            await do(request_stop, run.pk, by=owner)
            await other.read_until("Stopped before anything happened.")

    play(story)
    assert Output.objects.count() == 0


@pytest.mark.parametrize("how", ["signs out", "is deactivated"])
def test_who_may_not_see_it_any_more_is_told_nothing_more(
    steps: Steps, owner: User, how: str
) -> None:
    run = steps.start()

    def leave(page: OpenPage) -> None:
        if how == "signs out":
            page.client.logout()
        else:
            User.objects.filter(pk=owner.pk).update(is_active=False)

    async def story() -> None:
        async with OpenPage(run, owner) as page:
            await page.hear("state")
            await do(leave, page)
            await do(request_stop, run.pk, by=owner)
            assert await page.closed_with() == consumers.SIGNED_OUT

    play(story)


def test_the_page_speaks_the_language_of_its_reader(steps: Steps, owner: User) -> None:
    """Sections that come by the socket are in the language of the page that they go into."""
    run = steps.start()

    async def story() -> None:
        async with OpenPage(run, owner, query="lang=zh-Hans") as page:
            await page.hear("state")
            assert "停止运行" in page.html["stopbox"]

    play(story)
