"""A real Chromium: sign in, open every table, and hear no complaint of the content policy."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib import admin as site
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from compensation import saga
from tests.acting import call, mail, meeting, message, proposed, stopped, ticket
from tests.conftest import PASSWORD
from tests.tools.conftest import RunningWorld, _world_process, world

__all__ = ["_world_process", "world"]

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def history(owner: User, world: RunningWorld) -> None:
    """Something in every table."""
    proposed(owner, mail())
    run = stopped(owner, ticket(), message(), meeting())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 2).pk, call(run, 3).pk])
    while saga.run_next(run.pk):
        pass


@pytest.fixture
def addresses() -> dict[str, str]:
    """Every table of the admin, by its name."""
    names = [kind._meta for kind in site.site._registry]
    return {
        f"{meta.app_label}.{meta.model_name}": reverse(
            f"admin:{meta.app_label}_{meta.model_name}_changelist"
        )
        for meta in names
    }


@pytest.fixture
def page(chromium: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    # Playwright's loop runs in this thread; the database is spoken to beside it, not in it.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 860})
        browser.close()


@pytest.mark.usefixtures("history", "admin")
def test_an_admin_signs_in_and_opens_every_table_without_a_complaint(
    addresses: dict[str, str], live_server: LiveServer, page: Page
) -> None:
    complaints: list[str] = []
    page.on("console", lambda line: line.type == "error" and complaints.append(line.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{live_server.url}{reverse('admin:index')}")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Site administration").wait_for()
    picture(page, "index")
    for name, address in addresses.items():
        page.goto(f"{live_server.url}{address}")
        picture(page, name)
        row = page.locator("#result_list tbody th a, #result_list tbody td a").first
        if row.count():
            row.click()
            page.wait_for_load_state()
            picture(page, f"{name}-row")
    assert complaints == []


def picture(page: Page, name: str) -> None:
    """Kept only where SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"admin-{name}.png")
