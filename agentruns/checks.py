"""What `manage.py check --deploy` says of this site, beside what Django says of any."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, connection

from agentruns.postgresql.hardening import excess_of
from agentruns.services.secretkey import LEAST, is_kept

# Was in the source once.
KNOWN_KEYS = frozenset({"demo-only-key-that-protects-nothing-beyond-this-machine"})
DIFFERENT = 5  # characters, at least

DEMO_ON = Error(
    "DEMO is on: there are demo people, one of them a superuser, and sign-in by links.",
    hint="Set DEMO=0. Then deactivate the demo's people, if this database has them.",
    id="agentruns.E001",
)
WEAK_KEY = Error(
    "SECRET_KEY is known, short, or the one that was made for this data folder.",
    hint="Set SECRET_KEY to a long random text that is kept apart from the data.",
    id="agentruns.E002",
)
NO_PROXY = Warning(
    "HTTPS is on, and TRUSTED_PROXIES names no proxy. This server speaks plain HTTP, so who is in "
    "front of it has to say who asks and over what; else all requests have one address and look "
    "like plain HTTP.",
    hint="Set TRUSTED_PROXIES to the address from which the proxy connects, such as 127.0.0.1.",
    id="agentruns.W003",
)
SHORT_HORIZON = Error(
    "LOOKUP_HORIZON_SCALE is below 1: what an outside system does late is called failed too soon.",
    hint="Leave it out. Where a system needs less time, its tool says so.",
    id="agentruns.E005",
)


@register(Tags.security, deploy=True)
def is_no_demo(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [DEMO_ON] if settings.DEMO else []


@register(Tags.security, deploy=True)
def has_a_key_of_its_own(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    key = settings.SECRET_KEY
    is_weak = len(key) < LEAST or len(set(key)) < DIFFERENT or key in KNOWN_KEYS
    return [WEAK_KEY] if is_weak or is_kept(settings.DATA_DIR, key) else []


@register(Tags.security, deploy=True)
def knows_its_proxy(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [NO_PROXY] if settings.HTTPS and not settings.TRUSTED_PROXIES else []


@register(Tags.security, deploy=True)
def works_under_a_role_of_its_own(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    try:
        with connection.cursor() as cursor:
            found = excess_of(cursor)
    except DatabaseError:
        return []  # whether it answers is another question
    return [
        Warning(
            f"Whoever works as the role of DATABASE_URL can change the ledger unseen: {what}.",
            hint="Give the application a role of its own, and DATABASE_OWNER_URL the owner's.",
            id="agentruns.W004",
        )
        for what in found
    ]


@register(deploy=True)
def waits_as_long_as_tools_say(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [SHORT_HORIZON] if settings.LOOKUP_HORIZON_SCALE < 1 else []
