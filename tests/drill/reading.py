"""A person who reads the stack's pages without a browser: a session, and what a form sends."""

import secrets
from typing import Self

import httpx2
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User

from agentruns.services.stack import Stack
from tests.conftest import PASSWORD
from tests.drill.over_http import PATIENCE


class Reader:
    """A new person, signed in. Use it with the fixture `stack_db`, through which they are made."""

    def __init__(self, stack: Stack, *, base_url: str = "", **rights: bool) -> None:
        # The stack's servers know of no hash that is quick for tests.
        known = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)
        name = f"reader-{secrets.token_hex(4)}"
        self.user = User.objects.create(username=name, password=known, **rights)
        self.http = httpx2.Client(base_url=stack.base_url, timeout=PATIENCE)
        self.http.get("/sign-in/").raise_for_status()
        answer = self.post("/sign-in/", username=name, password=PASSWORD)
        assert answer.status_code == 302, answer.text
        self.http.base_url = httpx2.URL(base_url or stack.base_url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.http.close()

    def get(self, path: str) -> httpx2.Response:
        return self.http.get(path)

    def post(self, path: str, **fields: str) -> httpx2.Response:
        token = self.http.cookies["csrftoken"]
        return self.http.post(path, data={"csrfmiddlewaretoken": token, **fields})

    @property
    def cookies(self) -> str:
        """As a header."""
        return "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
