"""A live socket opens for a page of this site: not for another host's, nor another port's."""

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from tests.agentruns.pages.sockets import OpenPage, play
from tests.agentruns.steps import Steps

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "origin",
    [
        "http://elsewhere.example",
        "http://localhost:9999",
        "http://127.0.0.1",
        "http://localhost.elsewhere.example",
        "http://[",
        "null",
        "",
    ],
)
def test_a_foreign_page_opens_no_socket(steps: Steps, owner: User, origin: str) -> None:
    run = steps.start()

    async def story() -> None:
        async with OpenPage(run, owner, origin=origin) as page:
            assert not page.is_let_in

    play(story)


@pytest.mark.parametrize("origin", ["http://localhost", "https://localhost"])
def test_our_own_page_does_also_behind_a_proxy_that_ends_tls(
    steps: Steps, owner: User, origin: str
) -> None:
    run = steps.start()

    async def story() -> None:
        async with OpenPage(run, owner, origin=origin) as page:
            assert page.is_let_in

    play(story)


def test_a_site_that_forms_may_come_from_may_open_sockets_too(
    steps: Steps, owner: User, settings: Settings
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://127.0.0.1:8443"]
    run = steps.start()

    async def story() -> None:
        async with OpenPage(run, owner, origin="https://127.0.0.1:8443") as page:
            assert page.is_let_in

    play(story)


@pytest.mark.parametrize("run", ["run_none", "../x", "%00"])
def test_an_address_where_nothing_is_closes(owner: User, run: str) -> None:
    async def story() -> None:
        async with OpenPage(run, owner) as page:
            assert not page.is_let_in

    play(story)
