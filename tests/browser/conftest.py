"""A real Chromium before the whole stack, and people who each have a browser of their own."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect, sync_playwright

from agentruns import demo
from agentruns.services.stack import Stack
from tests.browser.visitor import Complaints, Visit, Visitor

PATIENCE = 20_000  # ms
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="package")
def browser(chromium: str, stack: Stack) -> Iterator[Browser]:
    """For these tests only: while it runs, no other test may use the database."""
    with pytest.MonkeyPatch.context() as patch:
        # Playwright's loop runs in this thread; the database is spoken to beside it, not in it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        expect.set_options(timeout=PATIENCE)
        with sync_playwright() as playwright:
            yield playwright.chromium.launch(executable_path=chromium, args=FLAGS)
    # Whatever was clicked here: the ledger keeps what the protocol promises.
    stack.manage("verify_ledger")


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """No page may have a browser complain: every test hears that at its end."""
    heard = Complaints()
    yield heard
    assert heard.left == []


@pytest.fixture
def visit(browser: Browser, stack: Stack, complaints: Complaints) -> Iterator[Visit]:
    """Have somebody sign in with a browser of their own; options are those of Playwright."""
    visitors: list[Visitor] = []

    def come(user: User, **options: Any) -> Visitor:
        size = {"viewport": {"width": 1280, "height": 900}}
        context = browser.new_context(base_url=stack.base_url, **(size | options))
        context.set_default_timeout(PATIENCE)
        complaints.listen(context)
        visitor = Visitor(user, context, stack)
        visitor.sign_in()
        visitors.append(visitor)
        return visitor

    yield come
    for visitor in visitors:
        visitor.context.close()
        for run in visitor.started:
            run.let_go_of_all()


@pytest.fixture
def ana(browser: Browser, stack_db: None) -> User:
    """Starts runs and presses Stop; new in every test, so that her list is empty."""
    return demo.person(f"ana-{secrets.token_hex(4)}", "Ana", "Berg")


@pytest.fixture
def omar(browser: Browser, stack_db: None) -> User:
    """Reviews."""
    return demo.person(f"omar-{secrets.token_hex(4)}", "Omar", "Haddad", reviews=True)


@pytest.fixture
def oto(browser: Browser, stack_db: None) -> User:
    """Has nothing to do with Ana's runs."""
    return demo.person(f"oto-{secrets.token_hex(4)}", "Oto", "Lang")


@pytest.fixture
def at_desk(ana: User, visit: Visit) -> Visitor:
    """Ana, signed in, in a wide window."""
    return visit(ana)
