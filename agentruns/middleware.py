"""Middleware of the whole site."""

from collections.abc import Callable
from os import SEEK_END
from typing import IO, Any
from urllib.parse import unquote

from csp.constants import SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from agentruns.errors import AgentrunsError
from agentruns.page.reader import zone_of
from agentruns.views.problems import AWAY, bad_request, database_away, other_charset, problem


class AdminContentSecurityPolicy:
    """A wider content security policy for the admin, and for nothing else.

    The admin's framework evaluates expressions in its markup and writes styles inline, and
    offers no nonce. It is for staff only. Goes after CSPMiddleware.
    """

    WIDER: dict[str, Any] = {
        "script-src": [SELF, UNSAFE_INLINE, UNSAFE_EVAL],
        "style-src": [SELF, UNSAFE_INLINE],
    }

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        match = request.resolver_match
        if match is not None and "admin" in match.app_names:
            response._csp_replace = self.WIDER  # type: ignore[attr-defined]
        return response


class NotKept:
    """What is made for a person is kept by no browser and no proxy, unless it says otherwise."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class WholeBody:
    """Give a body that came in chunks its length: the REST framework takes one without for none,
    and a Stop would be told nothing of what it was asked to keep.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "Transfer-Encoding" in request.headers and not request.META.get("CONTENT_LENGTH"):
            body: IO[bytes] = request._stream  # (received whole)  # type: ignore[attr-defined]
            request.META["CONTENT_LENGTH"] = str(body.seek(0, SEEK_END))
            body.seek(0)
        return self.get_response(request)


class Problems:
    """Draw our own errors as a page, or as a fragment for htmx; REST has its own way."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # Django would decode address and body by whatever the request says.
        if request.content_params and not self._is_utf8(request.content_params):
            return other_charset(request)
        # The admin asks the database for whatever an address says, and that takes no NUL.
        whole = request.path_info + unquote(request.META.get("QUERY_STRING", ""))
        if "\x00" in whole and request.path_info.startswith(reverse("admin:index")):
            return bad_request(request)
        return self.get_response(request)

    def _is_utf8(self, params: dict[str, str]) -> bool:
        return params.get("charset", "utf-8").lower() in ("utf-8", "utf8")

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        """A page with the error's own sentence and status; None for what is not ours."""
        if isinstance(error, AWAY):
            return database_away(request, error)
        return problem(request, error) if isinstance(error, AgentrunsError) else None


class LocalTime:
    """Show times as the clock on the reader's wall does: the browser says which zone it is in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with timezone.override(zone_of(request.COOKIES)):
            return self.get_response(request)
