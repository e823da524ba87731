"""What went wrong, as a page of ours: never a bare status, never a trace."""

import sys

import structlog
from django.contrib.auth.models import AnonymousUser
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agentruns.api.errors import OtherCharset
from agentruns.api.problems import problem_response
from agentruns.errors import AgentrunsError, DatabaseAway, NotFound

HEADINGS = {
    400: gettext_lazy("That did not work"),
    403: gettext_lazy("Not yours to do"),
    404: gettext_lazy("Nothing here"),
    408: gettext_lazy("It took too long"),
    409: gettext_lazy("Things have moved on"),
    410: gettext_lazy("This link is old"),
    413: gettext_lazy("Too much at once"),
    500: gettext_lazy("Something went wrong"),
    503: gettext_lazy("Out of reach for a moment"),
}
AWAY = (OperationalError, InterfaceError)

log = structlog.get_logger(__name__)


def problem(request: HttpRequest, error: AgentrunsError) -> HttpResponse:
    """The error's own sentence; a fragment for htmx, which puts it into the page's `problem`."""
    return _page(request, error.status, str(error.sentence))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler404. Says the same for what is not there and for what is not yours."""
    return _page(request, 404, str(NotFound.sentence))


def not_allowed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler403."""
    return _page(request, 403, _("You have no right to do that."))


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler400."""
    return _page(request, 400, _("That could not be read."))


def other_charset(request: HttpRequest) -> HttpResponse:
    """For a request that says that it is not in UTF-8."""
    if request.path.startswith("/api/"):
        return problem_response(OtherCharset())
    return problem(request, OtherCharset())


def broken(request: HttpRequest) -> HttpResponse:
    """Django's handler500. Says only what is known."""
    if isinstance(error := sys.exc_info()[1], AWAY):
        return database_away(request, error)
    return _page(request, 500, _("Something went wrong on our side. It has been written down."))


def database_away(request: HttpRequest, error: Exception) -> HttpResponse:
    """A page that needs no database itself, so it cannot tell who is asking."""
    log.warning("page.database_away", error=repr(error))
    if request.path.startswith("/api/"):
        return problem_response(DatabaseAway())
    request.user = AnonymousUser()
    return problem(request, DatabaseAway())


def forged(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW."""
    return _page(
        request, 403, _("This page has been open for too long, so nothing was done. Load it anew.")
    )


def _page(request: HttpRequest, status: int, sentence: str) -> HttpResponse:
    heading = HEADINGS.get(status, HEADINGS[400])
    context = {"sentence": sentence, "status": status, "heading": heading}
    if getattr(request, "htmx", False):
        response = render(request, "agentruns/parts/problem.html", context, status=status)
        response["HX-Retarget"] = "#problem"
        response["HX-Reselect"] = ".problem"
        response["HX-Reswap"] = "innerHTML"
        return response
    return render(request, "agentruns/problem.html", context, status=status)
