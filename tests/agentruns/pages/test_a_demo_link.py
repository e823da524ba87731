"""The sign-in links of a demo: who can make one, where it holds, and what it takes (A3)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client

from agentruns import demolinks
from agentruns.services.discover import StackLock, describe, undescribe
from tests.agentruns.pages.reading import page, words
from tests.signing_in import csrf_token

pytestmark = pytest.mark.django_db

SECRET = "drawn at the start of this stack"
HERE = "127.0.0.1"


@pytest.fixture(autouse=True)
def _up(settings: Any, tmp_path: Path) -> Iterator[None]:
    """A stack is up, and this machine alone is let in."""
    settings.ALLOWED_HOSTS = ["localhost", HERE, "[::1]"]
    settings.DATA_DIR = tmp_path
    lock = StackLock(tmp_path)
    assert lock.acquire()
    describe(tmp_path, {"link_secret": SECRET})
    yield
    lock.release()


def visitor(**meta: Any) -> Client:
    return Client(enforce_csrf_checks=True, SERVER_NAME=HERE, **meta)


def link(username: str = "owner", secret: str = SECRET) -> str:
    return demolinks.path_of(username, secret)


def test_it_opens_a_page_with_one_button_that_signs_in(owner: User) -> None:
    client = visitor()
    answer = client.get(link())
    assert "Continue as Ana" in words(answer.content)
    assert client.get("/").status_code == 302, "the link alone must not sign anybody in"
    token = csrf_token(answer.content.decode())
    assert client.post(link(), {"csrfmiddlewaretoken": token})["Location"] == "/"
    assert "My runs" in page(client, "/")


def test_no_other_site_can_press_the_button(owner: User) -> None:
    client = visitor()
    assert client.post(link()).status_code == 403
    token = csrf_token(client.get(link()).content.decode())
    foreign = {"Origin": "https://elsewhere.example"}
    answer = client.post(link(), {"csrfmiddlewaretoken": token}, headers=foreign)
    assert answer.status_code == 403
    assert client.get("/").status_code == 302


def test_it_says_who_is_signed_out_by_it(owner: User, outsider: User) -> None:
    client = visitor()
    client.force_login(outsider)
    assert "Oto is signed in here now" in page(client, link())


def test_the_key_that_signs_sessions_makes_no_link(owner: User) -> None:
    signed = signing.dumps({"user": "owner"}, salt=demolinks.SALT)
    assert "This link is old" in page(visitor(), f"/demo/sign-in/{signed}/", 410)


def test_a_link_dies_with_its_start(owner: User) -> None:
    old = link()
    describe(settings.DATA_DIR, {"link_secret": "drawn at the next start"})
    assert "This link is old" in page(visitor(), old, 410)


def test_no_link_holds_while_no_stack_is_up(owner: User) -> None:
    describe(settings.DATA_DIR, {"link_secret": ""})
    page(visitor(), link(secret=""), 410)
    undescribe(settings.DATA_DIR)
    page(visitor(), link(), 410)


@pytest.mark.parametrize(
    "signed",
    ["nonsense", signing.dumps({"user": "owner"}, key=SECRET)],
    ids=["nonsense", "signed for something else"],
)
def test_a_link_that_the_stack_did_not_sign_opens_nothing(owner: User, signed: str) -> None:
    page(visitor(), f"/demo/sign-in/{signed}/", 410)


def test_a_link_for_somebody_who_has_left_opens_nothing(owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(is_active=False)
    page(visitor(), link(), 410)


def test_it_is_for_demos_only(owner: User, settings: Any) -> None:
    settings.DEMO = False
    page(visitor(), link(), 404)


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", "", "unix:"])
def test_it_is_for_this_machine_only(owner: User, address: str) -> None:
    page(visitor(REMOTE_ADDR=address), link(), 404)


@pytest.mark.parametrize(
    "name",
    ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "Via", "X-Real-IP"],
)
def test_it_does_not_come_through_a_proxy(owner: User, name: str) -> None:
    client = visitor()
    assert client.get(link(), headers={name: HERE}).status_code == 404
    token = csrf_token(client.get(link()).content.decode())
    sent = client.post(link(), {"csrfmiddlewaretoken": token}, headers={name: HERE})
    assert sent.status_code == 404


def point_database(monkeypatch: pytest.MonkeyPatch, where: dict[str, Any]) -> None:
    """The connection of this test is open already, and stays where it is."""
    for name, value in where.items():
        monkeypatch.setitem(settings.DATABASES["default"], name, value)


FAR = {"HOST": "db.example", "OPTIONS": {}}
FAR_OPTION = {"HOST": "", "OPTIONS": {"host": "/run/pg,db.example"}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALLOWED_HOSTS", [HERE, "agents.example.com"]),
        ("ALLOWED_HOSTS", ["*"]),
        ("ALLOWED_HOSTS", [HERE, ".localhost.example"]),
        ("CSRF_TRUSTED_ORIGINS", ["https://agents.example.com"]),
        ("DATABASE_URL", FAR),
        ("DATABASE_URL", FAR_OPTION),
        ("DATABASE_URL", {"HOST": "", "OPTIONS": {"service": "far"}}),
        ("REDIS_URL", "redis://:pw@redis.example:6379/0"),
        ("HTTPS", True),
        ("TRUSTED_PROXIES", [HERE]),
    ],
)
def test_none_holds_once_a_setting_points_outwards(
    owner: User, settings: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "DATABASE_URL":
        point_database(monkeypatch, value)
    else:
        setattr(settings, name, value)
    assert demolinks.pointing_outwards() == [name]
    assert visitor().get(link()).status_code == 404


@pytest.mark.parametrize(
    "database",
    [
        {"HOST": "", "OPTIONS": {"host": "/a folder/postgres"}},
        {"HOST": "localhost", "OPTIONS": {}},
        {"HOST": "::1", "OPTIONS": {}},
    ],
)
def test_what_is_on_this_machine_points_nowhere(
    settings: Any, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_database(monkeypatch, database)
    settings.REDIS_URL = "unix:///run/valkey.sock"
    assert demolinks.pointing_outwards() == []


def test_who_tries_many_links_is_locked_out(owner: User) -> None:
    client = visitor()
    token = csrf_token(client.get(link()).content.decode())
    for _time in range(settings.AXES_FAILURE_LIMIT):
        client.post("/demo/sign-in/guessed/", {"csrfmiddlewaretoken": token})
    assert client.post(link(), {"csrfmiddlewaretoken": token}).status_code == 429


def test_a_site_that_has_a_browser_open_wrong_links_locks_nobody_out(owner: User) -> None:
    client = visitor()
    for _time in range(settings.AXES_FAILURE_LIMIT):
        client.get("/demo/sign-in/guessed/")
    assert client.get(link()).status_code == 200
