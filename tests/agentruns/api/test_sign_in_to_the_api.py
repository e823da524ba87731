"""Who is asking: by token, or by the browser's session with its CSRF token."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from agentruns.models import Agent
from tests.agentruns.api.asking import get, is_problem, post
from tests.agentruns.api.conftest import Api
from tests.conftest import PASSWORD

WANTED = {"agent": "tester", "goal": "Tidy the inbox."}


@pytest.mark.django_db
def test_a_name_and_a_password_get_a_token_that_works(owner: User) -> None:
    answer = post(Client(), "auth/token", {"username": "owner", "password": PASSWORD})

    assert answer.status_code == 200
    headers = {"Authorization": f"Token {answer.json()['token']}"}
    assert get(Client(headers=headers), "runs").status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("username", ["owner", "nobody"])
def test_a_wrong_password_and_a_wrong_name_get_the_same_answer(owner: User, username: str) -> None:
    answer = post(Client(), "auth/token", {"username": username, "password": "wrong"})

    is_problem(answer, 401, "not_signed_in")


@pytest.mark.django_db
def test_too_many_wrong_passwords_lock_the_door(owner: User) -> None:
    wrong = {"username": "owner", "password": "wrong"}
    for _ in range(settings.AXES_FAILURE_LIMIT):
        post(Client(), "auth/token", wrong)

    right = post(Client(), "auth/token", wrong | {"password": PASSWORD})

    is_problem(right, 429, "too_many_attempts")


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["", "abc", "a b", "\xff\xfe", "x" * 5000])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    client = Client(headers={"Authorization": f"Token {token}"})

    is_problem(get(client, "runs"), 401, "not_signed_in")


@pytest.mark.django_db
def test_a_person_who_was_deactivated_is_refused(api: Api, owner: User) -> None:
    client = api(owner)
    User.objects.update(is_active=False)

    is_problem(get(client, "runs"), 401, "not_signed_in")


def test_a_session_starts_a_run_only_with_its_csrf_token(agent: Agent, owner: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    secret = "a" * 32
    client.cookies["csrftoken"] = secret

    without = post(client, "runs", WANTED)
    with_it = post(client, "runs", WANTED, headers={"X-CSRFToken": secret})

    is_problem(without, 403, "not_allowed")
    assert with_it.status_code == 201
