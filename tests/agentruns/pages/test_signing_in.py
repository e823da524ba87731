"""Who gets in, by which door."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import words
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/", "/runs/new/", "/runs/run_00000000000000000000000000/"])
def test_everything_but_the_door_is_closed(path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/sign-in/?next=")


def test_a_name_and_its_password_lead_to_my_runs(owner: User) -> None:
    answer = Client().post("/sign-in/", {"username": "owner", "password": PASSWORD}, follow=True)
    assert "My runs" in words(answer.content)


def test_a_wrong_password_is_told_and_the_name_kept(owner: User) -> None:
    answer = Client().post("/sign-in/", {"username": "owner", "password": "no"})
    assert "do not belong together" in words(answer.content)
    assert 'value="owner"' in answer.content.decode()


def test_too_many_wrong_passwords_lock_the_name_for_a_while(owner: User) -> None:
    client = Client()
    for _time in range(8):
        answer = client.post("/sign-in/", {"username": "owner", "password": "no"})
    assert answer.status_code == 429
    assert "too many wrong passwords" in words(answer.content)
    answer = client.post("/sign-in/", {"username": "owner", "password": PASSWORD})
    assert answer.status_code == 429


def test_signing_out_takes_a_post(browser: Browser, owner: User) -> None:
    client = browser(owner)
    assert client.get("/sign-out/").status_code == 405
    client.post("/sign-out/")
    assert client.get("/").status_code == 302


def test_light_and_dark_are_kept_and_painted_by_the_server(browser: Browser, owner: User) -> None:
    client = browser(owner)
    client.post("/theme/", {"theme": "dark"})
    assert 'data-theme="dark"' in client.get("/").content.decode()
    client.post("/theme/", {"theme": "../../etc"})
    assert "data-theme" not in client.get("/").content.decode()


def test_nothing_on_a_page_runs_or_styles_inline(browser: Browser, owner: User) -> None:
    answer = browser(owner).get("/")
    text = answer.content.decode()
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert " style=" not in text
    assert "<style" not in text
    assert "onclick" not in text


def test_the_language_follows_the_reader(browser: Browser, owner: User) -> None:
    client = browser(owner)
    client.post("/language/", {"language": "zh-hans", "next": "/"})
    assert '<html lang="zh-Hans"' in client.get("/").content.decode()
