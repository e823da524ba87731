"""Browsers without JavaScript: each for one person."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

Browser = Callable[[User], Client]


@pytest.fixture
def browser() -> Browser:
    """A client that is signed in as the person."""

    def client_of(person: User) -> Client:
        client = Client()
        client.force_login(person)
        return client

    return client_of
