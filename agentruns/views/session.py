"""Signing in and out, and how the pages look to the reader."""

from django.conf import settings
from django.contrib.auth import authenticate, login
from django.contrib.auth.views import LoginView, LogoutView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from agentruns import demolinks
from agentruns.errors import OldLink
from agentruns.page.reader import THEME_COOKIE, THEMES

A_YEAR = 365 * 24 * 60 * 60

sign_in = LoginView.as_view(
    template_name="agentruns/sign_in.html",
    redirect_authenticated_user=True,
    extra_context={"has_links": settings.DEMO and not demolinks.pointing_outwards()},
)
sign_out = LogoutView.as_view()


@require_http_methods(["GET", "POST"])
def demo_sign_in(request: HttpRequest, signed: str) -> HttpResponse:
    """Ask who opens the link that `make up` printed to go on as its person, then sign them in.

    The link alone signs nobody in: any web site could have a visitor's browser open it.
    """
    if not demolinks.hold_for(request):
        raise Http404
    # What only looks is not counted as a try: any web site could use the tries up.
    check = authenticate if request.method == "POST" else demolinks.LinkBackend().authenticate
    user = check(request, signature=signed)
    if user is None:
        raise OldLink
    if request.method == "POST":
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        return redirect("runs")
    return render(request, "agentruns/demo_sign_in.html", {"person": user})


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
