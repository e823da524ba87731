"""Stop is served by a process that draws nothing: it is heard while the pages hang or are down."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from agentruns.services.stack import Stack
from tests.drill.fronts import another_front
from tests.drill.over_http import Program
from tests.drill.reading import Reader

pytestmark = pytest.mark.stack


@pytest.fixture
def impatient(stack: Stack, stack_db: None) -> Iterator[str]:
    """The address of a second process in front of the same pages, which waits a second for them."""
    with another_front(stack, PAGES_PATIENCE="1") as url:
        yield url


@pytest.fixture
def ada(stack: Stack, stack_db: None, impatient: str) -> Iterator[Reader]:
    """May stop any run."""
    with Reader(stack, base_url=impatient, is_superuser=True, is_staff=True) as reader:
        yield reader


@contextmanager
def hanging(stack: Stack) -> Iterator[None]:
    """The process that draws does nothing at all, and is not dead either."""
    pid = stack.pids["pages"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_stop_is_heard_by_page_and_by_api_while_the_pages_hang(
    stack: Stack, program: Program, ada: Reader
) -> None:
    by_api, by_page = program.start("inbox"), program.start("inbox")
    for run_id in (by_api, by_page):
        program.generating(run_id, turn=1)

    with hanging(stack):
        assert program.stop(by_api)["won_by"] == "stop"
        assert ada.post(f"/runs/{by_page}/stop/").headers["location"] == f"/runs/{by_page}/"

    program.wait(by_api, "stopped_clean")
    assert program.wait(by_page, "stopped_clean")["stop"]["requested_by"] == ada.user.username


def test_a_run_whose_page_does_not_come_is_told_of_and_stopped_from_a_short_page(
    stack: Stack, program: Program, ada: Reader
) -> None:
    run_id = program.start("inbox")
    program.generating(run_id, turn=1)

    with hanging(stack):
        before = ada.get(f"/runs/{run_id}/")
        assert (before.status_code, before.headers["retry-after"]) == (503, "1")
        assert f'action="/runs/{run_id}/stop/"' in before.text
        assert "Running" in before.text
        ada.post(f"/runs/{run_id}/stop/")
        after = ada.get(f"/runs/{run_id}/")
        assert after.status_code == 503
        assert "Stop" in after.text.split("<h1>")[1]
        assert f'action="/runs/{run_id}/stop/"' not in after.text

    assert ada.get(f"/runs/{run_id}/").status_code == 200


def test_whatever_else_is_asked_while_the_pages_hang_says_so(stack: Stack, ada: Reader) -> None:
    with hanging(stack):
        page = ada.get("/")
        api = ada.http.post("/api/v1/runs", json={"agent": "inbox", "goal": "Please."})

    assert (page.status_code, "Stop still works" in page.text) == (503, True)
    assert (api.status_code, api.json()["code"]) == (503, "pages_busy")
    assert api.headers["content-type"] == "application/problem+json"


def test_stop_is_heard_while_the_pages_are_down_and_they_come_back(
    stack: Stack, program: Program, ada: Reader
) -> None:
    run_id = program.start("inbox")
    program.generating(run_id, turn=1)

    stack.kill("pages")
    assert program.stop(run_id)["won_by"] == "stop"

    stack.wait_for("pages")
    assert ada.get(f"/runs/{run_id}/").status_code == 200


def test_a_short_page_of_anothers_run_is_not_found(
    stack: Stack, program: Program, impatient: str
) -> None:
    run_id = program.start("inbox")
    with Reader(stack, base_url=impatient) as stranger, hanging(stack):
        for path in (f"/runs/{run_id}/", f"/runs/{run_id}/brief/"):
            assert stranger.get(path).status_code == 404
    assert httpx2.get(f"{impatient}/runs/{run_id}/brief/").status_code == 302
    program.stop(run_id)
