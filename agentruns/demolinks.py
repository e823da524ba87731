"""The sign-in links of a demo: whom one signs in, and where it holds.

A link is signed with a secret that is drawn at each start of the stack and kept in its running
file alone (agentruns/services/discover.py). So a link dies with the next start, and neither the
source, nor SECRET_KEY, nor the environment of a process is enough to make one. It holds on this
machine only, and nowhere once a setting or a header says that the pages can be reached by others.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest
from django.urls import reverse

from agentruns.services.discover import running_services

SALT = "demo-sign-in"
A_DAY = 24 * 60 * 60
# So begin the headers by which a proxy says that it passed a request on.
PASSED_ON = ("HTTP_X_FORWARDED", "HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP")


def path_of(username: str, secret: str) -> str:
    """The link that signs in this person while the stack with this secret is up."""
    signed = signing.dumps({"user": username}, key=secret, salt=SALT)
    return reverse("demo-sign-in", args=[signed])


def pointing_outwards() -> list[str]:
    """The settings by which others than this machine are, or may be, let in."""
    database = settings.DATABASES["default"]
    options = database.get("OPTIONS", {})
    databases = [database.get("HOST", ""), options.get("host", ""), options.get("hostaddr", "")]
    hosts = {
        "ALLOWED_HOSTS": settings.ALLOWED_HOSTS,
        "CSRF_TRUSTED_ORIGINS": [_host(url) for url in settings.CSRF_TRUSTED_ORIGINS],
        "DATABASE_URL": [host for each in databases if each for host in str(each).split(",")],
        "REDIS_URL": [_host(settings.REDIS_URL)],
    }
    found = [name for name, names in hosts.items() if not all(map(_is_here, names))]
    found += ["DATABASE_URL"] if "service" in options else []
    found += ["HTTPS"] if settings.HTTPS else []
    return found + (["TRUSTED_PROXIES"] if settings.TRUSTED_PROXIES else [])


def hold_for(request: HttpRequest) -> bool:
    """Whether this request may sign in by a link: from this machine, and not through a proxy."""
    return (
        settings.DEMO
        and not pointing_outwards()
        and _is_here(request.META.get("REMOTE_ADDR", ""))
        and not any(name.startswith(PASSED_ON) for name in request.META)
    )


class LinkBackend(BaseBackend):
    """Authenticates by a link, so that whoever tries many is locked out as at any other door."""

    def authenticate(self, request: HttpRequest, signature: str) -> User | None:  # type: ignore[override]
        """The person whom the link is for; None unless the stack that is up has made it."""
        secret = running_services(settings.DATA_DIR).get("link_secret")
        if not (secret and hold_for(request)):
            return None
        try:
            username = signing.loads(signature, key=secret, salt=SALT, max_age=A_DAY)["user"]
        except (signing.BadSignature, KeyError, TypeError):
            return None
        return User.objects.filter(username=username, is_active=True).first()


def _host(url: str) -> str:
    return urlsplit(url).hostname or urlsplit(url).path


def _is_here(host: str) -> bool:
    """Whether a host is this machine: a loopback name or address, or the folder of a socket."""
    if host == "localhost" or host.startswith("/"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
