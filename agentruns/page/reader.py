"""Who reads, in which language, by which clock, in light or dark: from cookies alone, so that
a page and its live socket agree.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.utils import timezone, translation

THEME_COOKIE = "theme"
THEMES = ("light", "dark")
ZONE_COOKIE = "timezone"


def zone_of(cookies: Mapping[str, str]) -> ZoneInfo | None:
    """The reader's time zone; None, the site's own, where the browser has not said."""
    name = cookies.get(ZONE_COOKIE, "").replace("%2F", "/")
    return ZoneInfo(name) if name in _zones() else None


def theme_of(cookies: Mapping[str, str]) -> str:
    """`light`, `dark`, or "" for what the reader's system prefers."""
    theme = cookies.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""


def person_of(session_key: str | None) -> Any:
    """Who is signed in with this session right now, read anew; None if nobody is any more."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if user.is_authenticated and user.is_active else None


@contextmanager
def reading(cookies: Mapping[str, str], language: str) -> Iterator[None]:
    """Words and times as this reader gets them."""
    known = language if language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
    with translation.override(known), timezone.override(zone_of(cookies)):
        yield


def preferences(request: HttpRequest) -> dict[str, Any]:
    """Context processor: what the base template needs on every page."""
    return {"theme": theme_of(request.COOKIES)}


@cache
def _zones() -> set[str]:
    return available_timezones()
