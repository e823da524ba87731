"""A long answer costs what is new of it: its pieces are drawn once, kept by their bytes, shared."""

from collections.abc import Iterator
from typing import Any

import nh3
import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from agentruns import consumers
from agentruns.doorbell import ring_watchers
from agentruns.page import prose, shared
from agentruns.page.prose import Chip, kept, pieces, render
from agentruns.protocol.lease import Fragment, renew_lease
from agentruns.protocol.stop import request_stop
from tests.agentruns.pages.sockets import OpenPage, do, play
from tests.agentruns.steps import Steps

PARAGRAPH = "One *paragraph* of an answer that goes on and on, with `code` in it.\n\n"
MARKDOWN = st.lists(
    st.sampled_from(
        [
            *("word", "**b**", "`", "```\n", "~~~", "\n", "\n\n", "- ", "1. ", "  ", "    ", "> "),
            *("# ", "| a | b |\n|---|---|\n", "| c | d |\n", "[a]", "[a]: http://x.example\n"),
            *("---\n", "\r\n", "\t", "é😀", "\x00", "<b>", "***", "===\n", "\\"),
        ]
    ),
    max_size=60,
).map("".join)


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    kept.clear()
    yield
    kept.clear()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters were drawn as Markdown, each time."""
    lengths: list[int] = []
    real = prose._parser.parse

    def parse(source: str, env: Any = None) -> Any:
        lengths.append(len(source))
        return real(source, env)

    monkeypatch.setattr(prose._parser, "parse", parse)
    return lengths


def whole(text: str) -> str:
    """As it reads if it is drawn in one go."""
    html = prose._parser.render(text.translate(prose._PRIVATE))
    return nh3.clean(
        html,
        tags=prose._TAGS,
        attributes=prose._ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


@profile(deadline=None)
@given(text=MARKDOWN, cuts=st.lists(st.integers(0, 400), max_size=6))
def test_in_pieces_and_while_it_grows_it_reads_as_in_one_go(text: str, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prose, "PIECE", 12)
        kept.clear()
        for cut in [*sorted(cuts), len(text)]:
            found = "".join(pieces(text[:cut], key=1))
            assert found == whole(text[:cut])


def test_of_a_growing_text_only_the_end_is_drawn_anew(drawn: list[int]) -> None:
    text = ""
    for _ in range(1000):
        text += PARAGRAPH
        pieces(text, key=1)
    assert max(drawn) < 2 * prose.PIECE
    drawn.clear()
    assert "".join(pieces(text, key=1)) == render(text)
    assert drawn == [len(text)]  # by `render`, which keeps nothing


def test_a_call_within_what_was_drawn_is_put_there() -> None:
    text = PARAGRAPH * 200
    pieces(text, key=1)
    chip = Chip(len(text) - 500, "Send mail", "✓", "done", "call-1", "Mail to Bo: done")
    found = pieces(text + PARAGRAPH, [chip], key=1)
    assert "".join(found) == render(text + PARAGRAPH, [chip])
    assert "Send mail" in found[-2] + found[-1]


def test_what_is_kept_has_a_bound_in_bytes(settings: Settings) -> None:
    settings.DRAWN_TEXT_BYTES = 1_000_000
    for key in range(100):
        pieces(f"{key} " + PARAGRAPH * 1000, key=key)
        assert kept.size <= 1_000_000
    assert kept.get(99).pieces
    assert not kept.get(0).pieces
    pieces(PARAGRAPH * 20_000, key="larger than all")
    assert not kept.get("larger than all").pieces


@pytest.mark.django_db(transaction=True)
def test_an_open_page_gets_the_pieces_that_changed(steps: Steps, owner: User) -> None:
    run = steps.start()
    lease = steps.think(run)
    text = PARAGRAPH * 500

    async def story() -> None:
        async with OpenPage(run, owner) as page:
            await do(renew_lease, lease, Fragment(text, 1, 1))
            await do(ring_watchers, run.pk)
            await page.read_until("One <em>paragraph</em>")
            await do(renew_lease, lease, Fragment(text + "And **more**.", 2, 2))
            await do(ring_watchers, run.pk)
            news = (await page.read_until("<strong>more</strong>"))["html"]
            [piece] = [name for name in news if name.startswith("output-")]
            assert "answer" not in news
            assert f'data-start="{len(text) + 13}"' in news[piece]
            assert len(news[piece]) < 4 * prose.PIECE

    play(story)


@pytest.mark.django_db(transaction=True)
def test_all_open_pages_of_a_person_share_one_drawing(
    steps: Steps, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = steps.start()
    lease = steps.think(run)
    count = 0
    real = shared.build

    def build(*args: Any) -> Any:
        nonlocal count
        count += 1
        return real(*args)

    monkeypatch.setattr(shared, "build", build)
    monkeypatch.setattr(consumers, "LOOK_AGAIN", 60.0)

    async def story() -> None:
        nonlocal count
        pages = [OpenPage(run, owner) for _ in range(10)]
        for page in pages:
            await page.__aenter__()
            await page.hear("state")
        count = 0
        await do(renew_lease, lease, Fragment("Something *new*.", 1, 1))
        await do(ring_watchers, run.pk)
        for page in pages:
            await page.read_until("<em>new</em>")
        for page in pages:
            await page.__aexit__()

    play(story)
    assert 1 <= count <= 4  # not ten


@pytest.mark.django_db(transaction=True)
def test_who_opens_too_many_pages_has_the_newest_live(
    steps: Steps, owner: User, reviewer: User, settings: Settings
) -> None:
    settings.SOCKETS_PER_PERSON = 2
    run = steps.start()

    async def story() -> None:
        other, first, second, third, fourth = (
            OpenPage(run, person) for person in (reviewer, owner, owner, owner, owner)
        )
        async with other, first, second:
            await first.hear("state")
            async with third:
                assert await first.closed_with() == 4429
                for page in (other, second, third):
                    await page.hear("state")
            async with fourth:  # the third has gone: there is room
                await do(request_stop, run.pk, by=owner)
                for page in (other, second, fourth):
                    await page.read_until("Stopped")

    play(story)
