"""Programs that speak to the API: each for one person."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from knox.models import AuthToken

from tests.agentruns.pages.conftest import browser

__all__ = ["api", "browser"]

Api = Callable[[User], Client]


@pytest.fixture
def api() -> Api:
    """A client that sends the person's token with each request."""

    def client_of(person: User) -> Client:
        _kept, token = AuthToken.objects.create(user=person)
        headers: dict[str, Any] = {"Authorization": f"Token {token}"}
        return Client(headers=headers)

    return client_of
