"""Tokens and sessions end with the password and the account; a token can be given back (A7)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from knox.models import AuthToken

from tests.agentruns.api.asking import get, is_problem
from tests.agentruns.api.conftest import Api
from tests.agentruns.pages.conftest import Browser

pytestmark = pytest.mark.django_db

NEW = "a new one of many words"


def by_person(person: User) -> None:
    person.set_password(NEW)
    person.save()


def by_admin(person: User) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    path = f"/admin/auth/user/{person.pk}/password/"
    sent = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    assert client.post(path, sent).status_code == 302


def by_command(person: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: NEW)
    call_command("changepassword", person.username, verbosity=0)


def by_sql(person: User) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE auth_user SET password = '!' WHERE id = %s", [person.pk])


def deactivated(person: User) -> None:
    User.objects.filter(pk=person.pk).update(is_active=False)


def deactivated_and_back(person: User) -> None:
    deactivated(person)
    User.objects.filter(pk=person.pk).update(is_active=True)


DOORS = [by_person, by_admin, by_command, by_sql, deactivated, deactivated_and_back]


@pytest.mark.parametrize("door", DOORS)
def test_tokens_and_sessions_end(
    owner: User,
    outsider: User,
    api: Api,
    browser: Browser,
    door: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, page = api(owner), browser(owner)
    others = [api(outsider), browser(outsider)]
    assert [get(each, "runs").status_code for each in (program, page, *others)] == [200] * 4

    if door is by_command:
        door(owner, monkeypatch)
    else:
        door(owner)

    is_problem(get(program, "runs"), 401, "not_signed_in")
    is_problem(get(page, "runs"), 401, "not_signed_in")
    assert [get(each, "runs").status_code for each in others] == [200, 200]


def test_a_session_whose_key_has_changed_since_ends_too(owner: User) -> None:
    page = Client()
    owner.set_password("an old one of many words")
    owner.save()
    sent = {"username": owner.username, "password": "an old one of many words"}
    assert page.post("/sign-in/", sent).status_code == 302
    before = page.session.session_key
    session = page.session
    session.cycle_key()
    page.cookies["sessionid"] = session.session_key
    assert page.session.session_key != before
    assert get(page, "runs").status_code == 200

    deactivated_and_back(owner)

    is_problem(get(page, "runs"), 401, "not_signed_in")


def test_other_changes_of_an_account_end_nothing(owner: User, api: Api, browser: Browser) -> None:
    program, page = api(owner), browser(owner)
    owner.first_name = "Anna"
    owner.save()
    assert [get(each, "runs").status_code for each in (program, page)] == [200, 200]


def test_a_token_is_given_back(owner: User, api: Api) -> None:
    given, kept = api(owner), api(owner)
    answer = given.delete("/api/v1/auth/token")
    assert (answer.status_code, answer.content) == (204, b"")
    is_problem(get(given, "runs"), 401, "not_signed_in")
    is_problem(given.delete("/api/v1/auth/token"), 401, "not_signed_in")
    assert get(kept, "runs").status_code == 200


def test_a_session_has_no_token_to_give_back(owner: User, browser: Browser) -> None:
    is_problem(browser(owner).delete("/api/v1/auth/token"), 401, "not_signed_in")


def test_an_admin_takes_a_token_away(owner: User, admin: User, api: Api, browser: Browser) -> None:
    program, page = api(owner), browser(admin)
    token = AuthToken.objects.get(user=owner)
    listed = page.get("/admin/knox/authtoken/").content.decode()
    assert token.token_key in listed
    chosen: dict[str, Any] = {
        "action": "delete_selected",
        "_selected_action": [token.pk],
        "post": "yes",
    }
    assert page.post("/admin/knox/authtoken/", chosen).status_code == 302
    is_problem(get(program, "runs"), 401, "not_signed_in")
