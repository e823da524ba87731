"""Who sends half of a request, or reads half of an answer, keeps no one else from being served."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from socket import create_connection
from socket import socket as Socket
from urllib.parse import urlsplit

import pytest
from django.db import connection, transaction

from agentruns.models import Run
from agentruns.server import HEAD_LIMIT
from agentruns.services.stack import Stack
from tests.drill.fronts import another_front
from tests.drill.over_http import Program, until
from tests.drill.reading import Reader

pytestmark = pytest.mark.stack

MANY = 220  # more than there are places on the way to the pages
STOPS = 50  # more than there are connections to the database


@pytest.fixture
def hasty(stack: Stack, stack_db: None) -> Iterator[str]:
    """The address of a front that gives a body two seconds."""
    with another_front(stack, BODY_PATIENCE="2") as url:
        yield url


@pytest.fixture
def ada(stack: Stack, stack_db: None, hasty: str) -> Iterator[Reader]:
    """May stop any run."""
    with Reader(stack, base_url=hasty, is_superuser=True, is_staff=True) as reader:
        yield reader


def opened(url: str, path: str, *more: str) -> Socket:
    """A connection over which the beginning of a POST was sent, and one letter of ten."""
    at = urlsplit(url)
    connected = create_connection((str(at.hostname), int(at.port or 0)), timeout=20)
    head = [f"POST {path} HTTP/1.1", f"Host: {at.netloc}", "Content-Length: 10", *more]
    connected.sendall(("\r\n".join(head) + "\r\n\r\n{").encode())
    return connected


def whole(connected: Socket) -> bytes:
    """An answer, up to the end of its connection; the rest of what was sent is not read there."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := connected.recv(65536):
            said += piece
    return said


def test_half_sent_requests_take_no_place(
    stack: Stack, program: Program, ada: Reader, hasty: str
) -> None:
    run_id = program.start("inbox")
    program.generating(run_id, turn=1)
    paths = ["/runs/new/", f"/runs/{run_id}/stop/", f"/api/v1/runs/{run_id}/cancel"]

    with ExitStack() as all_:
        half = [all_.enter_context(opened(hasty, paths[number % 3])) for number in range(MANY)]
        assert ada.get("/").status_code == 200
        assert ada.post(f"/runs/{run_id}/stop/").status_code == 302

        said = [whole(each).decode() for each in half[:3]]

    page, stop, api = said
    for each in said:
        assert each.startswith("HTTP/1.1 408 ")
        assert re.search("(?i)^connection: close", each, re.MULTILINE)
    assert "did not arrive whole" in page
    assert "did not arrive whole" in stop
    assert json.loads(api.split("\r\n\r\n", 1)[1])["code"] == "body_too_slow"


def test_a_drip_is_no_body(hasty: str, stack: Stack) -> None:
    """However often something of it comes, it has to be there in its time."""
    with opened(hasty, "/api/v1/runs") as half:
        half.settimeout(0.5)
        answer = b""
        for _letter in range(9):
            try:
                answer = half.recv(4096)
            except TimeoutError:
                half.sendall(b"}")
            if answer:
                break
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("head", [b"", b"POST /runs/x/stop/ HTTP/1.1\r\nHo"])
def test_half_a_head_is_not_waited_for_either(stack: Stack, head: bytes) -> None:
    with create_connection(("127.0.0.1", int(stack.env["PORT"])), timeout=HEAD_LIMIT + 10) as half:
        half.sendall(head)
        with suppress(ConnectionResetError):
            assert half.recv(4096) == b""


def test_a_body_that_is_too_large_is_refused_before_it_has_arrived(hasty: str) -> None:
    at = urlsplit(hasty)
    with create_connection((str(at.hostname), int(at.port or 0)), timeout=20) as large:
        head = f"POST /api/v1/runs HTTP/1.1\r\nHost: {at.netloc}\r\nContent-Length: 9000000"
        large.sendall(head.encode() + b"\r\n\r\n" + b"x" * 2_700_000)
        answer = whole(large).decode()
    assert answer.startswith("HTTP/1.1 413 ")
    assert json.loads(answer.split("\r\n\r\n", 1)[1])["code"] == "body_too_large"


@pytest.mark.parametrize("name", ["Content-Length", "X-Forwarded-For", "Cookie"])
def test_naming_a_header_in_connection_hides_it_from_nobody(
    stack: Stack, ada: Reader, name: str
) -> None:
    sent = {"Connection": f"keep-alive, {name}", "X-Forwarded-For": "203.0.113.7"}
    answer = ada.http.post("/theme/", data={"theme": "dark"}, headers=sent)
    assert answer.status_code == 403  # without its CSRF token, and not 500, nor signed out
    link = ada.http.get("/demo/sign-in/x/", headers=sent)
    assert link.status_code == 404
    assert "Start again" not in link.text, "it is not even looked at"


def test_stops_of_many_locked_runs_leave_room_for_those_of_another(
    stack: Stack, program: Program
) -> None:
    locked, other = [program.start("inbox") for _ in range(8)], program.start("inbox")

    with ThreadPoolExecutor(STOPS) as pool:
        with transaction.atomic():
            assert len(Run.objects.select_for_update(no_key=True).filter(pk__in=locked)) == 8
            stops = [pool.submit(program.stop, run_id) for run_id in locked * 4]
            until(waiting_for_a_lock, lambda found: found >= len(locked) // 2)
            began = time.monotonic()
            program.stop(other)
            took = time.monotonic() - began
        wait(stops)
    told = [str(error) for stop in stops if (error := stop.exception())]
    assert all("database_away" in each for each in told), told  # on a busy machine: come again
    assert took < 3.0


def test_stops_of_a_run_that_is_locked_leave_room_for_those_of_another(
    stack: Stack, program: Program
) -> None:
    locked, other = program.start("inbox"), program.start("inbox")
    for run_id in (locked, other):
        program.generating(run_id, turn=1)

    with ThreadPoolExecutor(STOPS) as pool:
        with transaction.atomic():
            Run.objects.select_for_update(no_key=True).get(pk=locked)
            stops = [pool.submit(program.stop, locked) for _ in range(STOPS)]
            until(waiting_for_a_lock, bool)
            began = time.monotonic()
            program.stop(other)
            took = time.monotonic() - began
            assert not any(stop.done() for stop in stops)
        answers = [stop.result() for stop in stops]

    assert took < 3.0  # where ten seconds is how long a connection is waited for
    assert all(answer == answers[0] for answer in answers)


def waiting_for_a_lock() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return int(cursor.fetchone()[0])
