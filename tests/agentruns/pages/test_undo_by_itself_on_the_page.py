"""Where policy undoes reversible steps after a Stop: said before, and told after."""

import pytest
from django.contrib.auth.models import User

from agentruns.models import Run, ToolCall
from agentruns.page.words import clock
from compensation.saga import run_next, undo_after_stop
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page
from tests.agentruns.steps import Steps, anew, now
from tools import policy

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def acted(steps: Steps) -> tuple[Run, list[ToolCall]]:
    """A booking and a post, both done, of an agent whose reversible steps are undone."""
    policy.sync()
    type(steps.agent).objects.filter(pk=steps.agent.pk).update(auto_undo="reversible")
    run, calls = steps.running("test.book", "test.post")
    return now(run), [steps.act(call) for call in calls]


def test_the_choice_of_agents_says_it_too(browser: Browser, owner: User, steps: Steps) -> None:
    words = "If you stop it, what can be undone is undone by itself."
    assert words not in page(browser(owner), "/runs/new/")
    type(steps.agent).objects.filter(pk=steps.agent.pk).update(auto_undo="reversible")
    assert words in page(browser(owner), "/runs/new/")


def test_the_place_of_stop_says_it_beforehand(
    acted: tuple[Run, list[ToolCall]], browser: Browser, owner: User
) -> None:
    said = page(browser(owner), f"/runs/{acted[0].pk}/")
    assert "1 action is done and can be partly undone afterwards." in said
    assert "1 action is done and will then be undone by itself." in said


def test_it_can_be_stopped_before_it_begins(
    acted: tuple[Run, list[ToolCall]], browser: Browser, owner: User, steps: Steps
) -> None:
    run, (book, _post) = acted
    steps.stop(run)
    client = browser(owner)
    said = page(client, f"/runs/{run.pk}/")
    assert "What can be undone by itself is about to be undone. Stop undoing" in said
    client.post(f"/runs/{run.pk}/undo/stop/")
    assert undo_after_stop(run.pk) is None
    assert "about to be undone" not in page(client, f"/runs/{run.pk}/")
    assert anew(book).undo_state == ""


def test_afterwards_it_is_told_apart_from_what_somebody_asked_for(
    acted: tuple[Run, list[ToolCall]], browser: Browser, owner: User, steps: Steps
) -> None:
    run, (book, _post) = acted
    steps.stop(run)
    undo_after_stop(run.pk)
    assert run_next(run.pk)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "One action was undone by itself, after the Stop." in said
    assert f"Undone {clock(anew(book).undone_at)} by itself, after the Stop." in said
    assert "It is gone again." in said
    assert "Two things happened. One of them has been undone." in said
