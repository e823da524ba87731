"""Browsers in which somebody is signed in; the module that the setting SESSION_ENGINE names."""

from typing import Any, cast

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models


class SessionStore(DatabaseStore):
    """In the database, each session with its account."""

    @classmethod
    def get_model_class(cls) -> type["Session"]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> "Session":
        session = cast(Session, super().create_model_instance(data))
        session.account_id = data.get(SESSION_KEY)
        return session


class Session(AbstractBaseSession):
    """As Django's own, with the account that is signed in: so it ends with that (account.py),
    whatever its key has become since.
    """

    account_id = models.IntegerField(null=True, db_index=True)

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        return SessionStore
