"""Every error of the API as problem+json (RFC 9457): a code for programs, a sentence for people.

The one place where exceptions become HTTP: ours, Django's, and the REST framework's.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
)
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from rest_framework import exceptions
from rest_framework.response import Response

from agentruns.api.errors import (
    BodyTooLarge,
    MalformedBody,
    NotSignedIn,
    TooManyAttempts,
)
from agentruns.errors import AgentrunsError, BadInput, DatabaseAway, NotAllowed, NotFound
from tools.storable import storable

CONTENT_TYPE = "application/problem+json"
TYPE = "urn:agentruns:problem:"
RESERVED = frozenset({"type", "title", "status", "detail", "code", "errors"})

log = structlog.get_logger(__name__)


# What the REST framework's other errors are called here.
CODES = {
    400: "bad_input",
    405: "method_not_allowed",
    406: "not_acceptable",
    415: "unsupported_media_type",
    429: "too_many_attempts",
}


def as_problem(error: Exception, context: Mapping[str, Any]) -> Response:
    """The REST framework's exception handler. Never returns None: there is no other error page."""
    ours = _translated(error)
    if ours is not None:
        body = problem(ours)
    elif isinstance(error, exceptions.APIException):
        body = _problem_of_framework(error)
    else:
        log.error("api.failed", exc_info=error, view=type(context.get("view")).__name__)
        body = problem(AgentrunsError())
    return Response(body, status=body["status"], content_type=CONTENT_TYPE, headers=_headers(error))


def problem(error: AgentrunsError) -> dict[str, Any]:
    """The body: RFC 9457's members, `code`, and the error's data as further members."""
    body: dict[str, Any] = {
        "type": TYPE + error.code,
        "title": str(type(error).sentence),
        "status": error.status,
        "detail": str(error.sentence),
        "code": error.code,
    }
    body |= {key: value for key, value in error.data.items() if key not in RESERVED}
    if field := body.pop("field", None):
        message = {"field": field, "message": body["detail"], "code": error.code}
        body["errors"] = [message]
    return dict(storable(body))  # it may repeat what was sent, which may be no text at all


def problem_response(error: AgentrunsError) -> JsonResponse:
    """The same, outside of the REST framework's views."""
    return JsonResponse(problem(error), status=error.status, content_type=CONTENT_TYPE)


def locked_out(request: HttpRequest, response: HttpResponse | None, *args: Any) -> HttpResponse:
    """What somebody gets after too many failed attempts to sign in, here or on the page."""
    if request.path.startswith("/api/"):
        return problem_response(TooManyAttempts())
    return render(request, "agentruns/locked_out.html", status=429)


def _translated(error: Exception) -> AgentrunsError | None:
    """The error in our words; None for what the REST framework says best, or nobody knows."""
    match error:
        case AgentrunsError():
            return error
        case exceptions.ParseError():
            return MalformedBody()
        case exceptions.AuthenticationFailed() | exceptions.NotAuthenticated():
            return NotSignedIn()
        case exceptions.PermissionDenied():
            return NotAllowed(error.detail)
        case PermissionDenied():
            return NotAllowed()
        case exceptions.NotFound() | Http404():
            return NotFound()
        case RequestDataTooBig() | TooManyFieldsSent():
            return BodyTooLarge()
        case SuspiciousOperation():
            return MalformedBody()
        case OperationalError() | InterfaceError():
            log.warning("api.database_away", error=repr(error))
            return DatabaseAway()
    return None


def _problem_of_framework(error: exceptions.APIException) -> dict[str, Any]:
    code = CODES.get(error.status_code, error.default_code)
    if isinstance(error, exceptions.ValidationError):
        title, errors = str(BadInput.sentence), list(_flat(error.get_full_details()))
        detail = errors[0]["message"] if errors else title
    else:
        title, errors, detail = HTTPStatus(error.status_code).phrase, [], str(error.detail)
    body: dict[str, Any] = {
        "type": TYPE + code,
        "title": title,
        "status": error.status_code,
        "detail": detail,
        "code": code,
    }
    return dict(storable(body | ({"errors": errors} if errors else {})))


def _flat(details: Any, field: str = "") -> Iterator[dict[str, str]]:
    """Validation errors as a flat list: which field, what is wrong, and its code."""
    if isinstance(details, dict) and set(details) == {"message", "code"}:
        name = "" if field == "non_field_errors" else field
        yield {"field": name, "message": str(details["message"]), "code": str(details["code"])}
    elif isinstance(details, dict):
        for key, value in details.items():
            yield from _flat(value, f"{field}.{key}" if field else str(key))
    else:
        for item in details:
            yield from _flat(item, field)


def _headers(error: Exception) -> dict[str, str]:
    """What the REST framework wants said in a header, e.g. how to authenticate."""
    headers = {}
    if auth := getattr(error, "auth_header", ""):
        headers["WWW-Authenticate"] = auth
    wait = getattr(error, "wait", None)
    if wait := wait or (isinstance(error, AgentrunsError) and error.data.get("retry_after")):
        headers["Retry-After"] = str(int(wait))
    return headers
