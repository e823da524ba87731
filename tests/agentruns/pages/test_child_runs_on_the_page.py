"""A run and those that it started: each leads to the other, and Stop says that it stops all."""

from django.contrib.auth.models import User

from agentruns.models import Run
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import page
from tests.agentruns.steps import Steps


def family(steps: Steps) -> tuple[Run, Run, Run]:
    parent, _calls = steps.running("test.book")
    child = steps.start(parent_id=parent.pk)
    return parent, child, steps.start(parent_id=child.pk)


def test_each_leads_to_the_other(steps: Steps, browser: Browser, owner: User) -> None:
    parent, child, grandchild = family(steps)
    client = browser(owner)
    of_parent = client.get(f"/runs/{parent.pk}/").content.decode()
    assert f'href="/runs/{child.pk}/"' in of_parent
    assert grandchild.pk not in of_parent
    of_child = client.get(f"/runs/{child.pk}/").content.decode()
    assert f'Started by the run <a href="/runs/{parent.pk}/"' in of_child
    assert f'href="/runs/{grandchild.pk}/"' in of_child


def test_stop_says_that_it_stops_them_too(steps: Steps, browser: Browser, owner: User) -> None:
    parent, child, grandchild = family(steps)
    client = browser(owner)
    assert "2 runs that it started stop too." in page(client, f"/runs/{parent.pk}/")
    assert "1 run that it started stops too." in page(client, f"/runs/{child.pk}/")
    steps.stop(grandchild)
    assert "1 run that it started stops too." in page(client, f"/runs/{parent.pk}/")


def test_stopped_with_its_parent_it_says_why_and_cannot_go_on_alone(
    steps: Steps, browser: Browser, owner: User
) -> None:
    parent, child, _grandchild = family(steps)
    steps.stop(parent)
    client = browser(owner)
    assert "Runs that it started Do it. ■ Stopped" in page(client, f"/runs/{parent.pk}/")
    said = page(client, f"/runs/{child.pk}/")
    assert "Not by itself: the run that started it has ended or was stopped." in said
    assert "It was stopped before it began." in said


def test_the_list_marks_them(steps: Steps, browser: Browser, owner: User) -> None:
    family(steps)
    assert page(browser(owner), "/").count("started by another run") == 2
