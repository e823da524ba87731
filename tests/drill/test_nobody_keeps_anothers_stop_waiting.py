"""Whoever asks a great deal, of Stop itself too, keeps nobody else's Stop from arriving."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

import httpx2
import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken

from agentruns.services.stack import Stack
from tests.drill.over_http import Program

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]

MANY = 120
SOON = 3.0  # seconds; alone it is a tenth of one


@contextmanager
def flood(url: str, method: str, headers: dict[str, str]) -> Iterator[Counter[int]]:
    """As many as MANY connections that ask for it again and again; what they were told."""
    over, told = threading.Event(), Counter[int]()

    def ask() -> None:
        with httpx2.Client(headers=headers, timeout=60) as client:
            while not over.is_set():
                told[client.request(method, url).status_code] += 1

    with ThreadPoolExecutor(MANY) as pool:
        asking = [pool.submit(ask) for _ in range(MANY)]
        while not told:
            time.sleep(0.05)
        try:
            yield told
        finally:
            over.set()
            wait(asking)
    for each in asking:
        each.result()


@pytest.mark.parametrize("by", ["a stranger to the run", "nobody"])
def test_stops_of_the_same_run_by_who_may_not(stack: Stack, program: Program, by: str) -> None:
    headers = {}
    if by != "nobody":
        token = AuthToken.objects.create(User.objects.get(username="omar"))[1]
        headers = {"Authorization": f"Token {token}"}
    run_id = program.start("inbox")
    with flood(f"{stack.base_url}/api/v1/runs/{run_id}/cancel", "POST", headers) as told:
        began = time.monotonic()
        assert program.stop(run_id)["won_by"] == "stop"
        took = time.monotonic() - began
    assert took < SOON
    assert told[401 if by == "nobody" else 403] > 1
    assert told[202] == 0


def test_whether_it_is_ready(stack: Stack, program: Program) -> None:
    run_id = program.start("inbox")
    with flood(f"{stack.base_url}/readyz", "GET", {}):
        began = time.monotonic()
        assert program.stop(run_id)["won_by"] == "stop"
        took = time.monotonic() - began
    assert took < SOON
