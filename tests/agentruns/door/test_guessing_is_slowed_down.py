"""One throttle for every door, by name, by address and by both; no header walks round it (A7)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from axes.backends import AxesStandaloneBackend
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test import Client

from agentruns.throttle import ADDRESS_LIMIT, CHECKED_AT_ONCE, NAME_LIMIT
from tests.agentruns.api.asking import JSON, post
from tests.agentruns.steps import Steps
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db

HOME, ELSEWHERE = "192.0.2.7", "198.51.100.9"
TOKEN = "/api/v1/auth/token"
DOORS = ("/sign-in/", "/admin/login/", TOKEN)


def try_(door: str, username: str, password: str, *, address: str = HOME, **headers: str) -> Any:
    sent: dict[str, Any] = {"username": username, "password": password}
    client = Client(REMOTE_ADDR=address)
    return client.post(
        door, sent, headers=headers, **({"content_type": JSON} if door == TOKEN else {})
    )


def spread(count: int) -> list[str]:
    return [f"203.0.113.{number}" for number in range(count)]


def pass_time(minutes: float) -> None:
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=minutes))


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP"])
def test_no_header_gives_another_try(owner: User, header: str) -> None:
    said = [try_(TOKEN, "owner", "no", **{header: address}).status_code for address in spread(20)]
    limit = settings.AXES_FAILURE_LIMIT
    assert said == [401] * (limit - 1) + [429] * (20 - limit + 1)
    assert try_(TOKEN, "owner", PASSWORD, **{header: ELSEWHERE}).status_code == 429


@pytest.mark.parametrize("tried", DOORS)
@pytest.mark.parametrize("door", DOORS)
def test_who_is_locked_out_at_one_door_is_at_all(admin: User, tried: str, door: str) -> None:
    for _time in range(settings.AXES_FAILURE_LIMIT):
        try_(tried, "admin", "no")
    assert try_(door, "admin", PASSWORD).status_code == 429
    assert try_(door, "admin", PASSWORD, address=ELSEWHERE).status_code in (200, 302)


def test_one_address_cannot_try_every_name(owner: User) -> None:
    said = [try_(TOKEN, f"name{n}", "Summer2026").status_code for n in range(ADDRESS_LIMIT)]
    assert said == [401] * (ADDRESS_LIMIT - 1) + [429]
    assert try_(TOKEN, "owner", PASSWORD).status_code == 429
    assert try_(TOKEN, "owner", PASSWORD, address=ELSEWHERE).status_code == 200


def test_one_name_cannot_be_tried_from_everywhere(owner: User) -> None:
    for address in spread(NAME_LIMIT):
        try_(TOKEN, "owner", "no", address=address)
    assert try_(TOKEN, "owner", PASSWORD, address=ELSEWHERE).status_code == 429


def test_the_addresses_of_one_house_count_as_one(owner: User) -> None:
    for number in range(settings.AXES_FAILURE_LIMIT):
        try_(TOKEN, "owner", "no", address=f"2001:db8:1:2::{number:x}")
    for same in ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"):
        assert try_(TOKEN, "owner", PASSWORD, address=same).status_code == 429
    assert try_(TOKEN, "owner", PASSWORD, address="2001:db8:1:3::1").status_code == 200


@pytest.mark.parametrize("door", DOORS)
def test_nobody_is_locked_out_at_home_by_others(admin: User, door: str) -> None:
    """Others try the name everywhere, and from the same address, as behind a shared proxy."""
    try_(door, "admin", PASSWORD)
    for address in spread(NAME_LIMIT):
        try_(TOKEN, "admin", "no", address=address)
    for number in range(ADDRESS_LIMIT):
        try_(TOKEN, f"name{number}", "no")
    assert try_(TOKEN, "admin", PASSWORD, address=ELSEWHERE).status_code == 429
    assert try_(TOKEN, "admin", PASSWORD).status_code == 200
    for _time in range(settings.AXES_FAILURE_LIMIT):
        try_(TOKEN, "admin", "no")
    assert try_(TOKEN, "admin", PASSWORD).status_code == 429, "at home, too, guessing is slow"


def test_trying_on_does_not_keep_a_name_locked(owner: User) -> None:
    for _time in range(settings.AXES_FAILURE_LIMIT):
        try_(TOKEN, "owner", "no")
    pass_time(14)
    assert try_(TOKEN, "owner", "no").status_code == 429
    pass_time(2)
    assert try_(TOKEN, "owner", PASSWORD).status_code == 200


def test_an_attack_can_be_traced_in_the_log(owner: User, caplog: pytest.LogCaptureFixture) -> None:
    try_(TOKEN, "owner\n[error] all is well", "the secret that was typed")
    assert f'"address": "{HOME}"' in caplog.text
    assert r'"username": "owner\n[error] all is well"' in caplog.text
    assert "the secret that was typed" not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_of_many_tries_at_once_a_few_are_checked(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have passed the first look before any has failed."""
    checked: list[str] = []
    begun, go = threading.Semaphore(0), threading.Event()
    first_look = threading.Barrier(20, timeout=20)
    real_check, real_look = User.check_password, AxesStandaloneBackend.authenticate

    def check(user: User, password: str) -> bool:
        checked.append(password)
        begun.release()
        assert go.wait(20)
        return real_check(user, password)

    def look(self: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        real_look(self, request, *args, **kwargs)
        if not hasattr(request, "has_looked"):
            request.has_looked = True
            first_look.wait()

    monkeypatch.setattr(User, "check_password", check)
    monkeypatch.setattr(AxesStandaloneBackend, "authenticate", look)
    with ThreadPoolExecutor(20) as pool:
        tries = [pool.submit(in_thread, TOKEN, "owner", f"no{n}") for n in range(20)]
        for _time in range(CHECKED_AT_ONCE):
            assert begun.acquire(timeout=20)
        at_once = len(checked)
        go.set()
        said = [each.result(timeout=60) for each in tries]
    assert at_once == CHECKED_AT_ONCE
    assert len(checked) < settings.AXES_FAILURE_LIMIT + CHECKED_AT_ONCE
    assert said.count(429) > 20 - settings.AXES_FAILURE_LIMIT - CHECKED_AT_ONCE
    assert set(said) == {401, 429}


def in_thread(*args: str) -> int:
    try:
        return int(try_(*args).status_code)
    finally:
        connection.close()


def test_stop_asks_nobody_who_is_signed_in(steps: Steps, owner: User) -> None:
    run = steps.start()
    client = Client(REMOTE_ADDR=HOME)
    client.force_login(owner)
    token = try_(TOKEN, "owner", PASSWORD)
    for _time in range(settings.AXES_FAILURE_LIMIT):
        try_(TOKEN, "owner", "no")
    assert try_(TOKEN, "owner", PASSWORD).status_code == 429
    headers = {"Authorization": f"Token {token.json()['token']}"}
    program = Client(REMOTE_ADDR=HOME, headers=headers)
    assert post(program, f"runs/{run.pk}/cancel").status_code == 202
    assert post(client, f"runs/{run.pk}/cancel").status_code == 202
    assert client.post(f"/runs/{run.pk}/stop/").status_code == 302
