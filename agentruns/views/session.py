"""Signing in and out, and how the pages look to the reader."""

from ipaddress import ip_address

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agentruns.errors import NotFound
from agentruns.page.reader import THEME_COOKIE, THEMES

A_DAY = 24 * 60 * 60
A_YEAR = 365 * A_DAY

sign_in = LoginView.as_view(
    template_name="agentruns/sign_in.html",
    redirect_authenticated_user=True,
    extra_context={"is_demo": settings.DEMO},
)
sign_out = LogoutView.as_view()


@require_GET
def demo_sign_in(request: HttpRequest, signed: str) -> HttpResponse:
    """Sign in somebody of the demo by the link that `make up` printed: on this machine only."""
    if not (settings.DEMO and _is_loopback(request.META.get("REMOTE_ADDR", ""))):
        raise Http404
    try:
        username = signing.loads(signed, salt="demo-sign-in", max_age=A_DAY)["user"]
    except (signing.BadSignature, KeyError, TypeError):
        raise NotFound(
            _("This sign-in link is not valid any more. Start again to get a new one.")
        ) from None
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise NotFound(_("There is nobody of that name here."))
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("runs")


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Keep light or dark in a cookie, so that the page is painted right the first time."""
    there = request.META.get("HTTP_REFERER", "")
    is_ours = url_has_allowed_host_and_scheme(
        there, {request.get_host()}, require_https=request.is_secure()
    )
    response = redirect(there if is_ours else "runs")
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE, theme, max_age=A_YEAR, samesite="Lax", secure=request.is_secure()
        )
    else:
        response.delete_cookie(THEME_COOKIE)
    return response
