"""How often signing in may fail: one throttle for the pages, the admin, the API and demo links.

Counted for a name from an address, for a name from anywhere, and for an address with any names.
The last two are slow, and hold for nobody who has signed in from that address lately: a person
cannot be locked out by others who try their name, nor by those with whom they share an address.
Whoever is signed in is not asked anything here; Stop never waits for it.

A few passwords are checked at once, and whoever waited is counted anew before the check: many that
arrive together are not all let through before the first has failed, and do not take the processor
and the database's connections from everybody else.
"""

import json
import threading
from datetime import timedelta
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

from axes.backends import AxesStandaloneBackend
from axes.exceptions import AxesBackendPermissionDenied
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessLog
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone

NAME_LIMIT = ADDRESS_LIMIT = 40  # failures in about AXES_COOLOFF_TIME
AT_HOME = timedelta(days=30)  # since the last sign-in with this name from this address
ONE_HOUSE = 64  # bits: whoever has one IPv6 address has all that begin like it
CHECKED_AT_ONCE = 3  # passwords, in one process
PATIENCE = 10.0  # seconds that one more waits for its turn

_turns = threading.BoundedSemaphore(CHECKED_AT_ONCE)


class PasswordBackend(ModelBackend):
    """Django's, a few at a time. Whoever fails here is asked for a password nowhere else."""

    def authenticate(  # type: ignore[override]
        self, request: HttpRequest, username: str, password: str
    ) -> User:
        """Raises AxesBackendPermissionDenied, which ends the attempt."""
        if not connection.in_atomic_block:
            connection.close()  # back to the pool: nobody waits with one in hand
        if not _turns.acquire(timeout=PATIENCE):
            request.axes_locked_out = True  # type: ignore[attr-defined]
            raise AxesBackendPermissionDenied("too many passwords are being checked")
        try:
            AxesStandaloneBackend().authenticate(request, username, password)
            user = super().authenticate(request, username, password)
            if user is None:
                # Counted before the next one has its turn, and not when Django says it again.
                AxesProxyHandler.user_login_failed(__name__, {"username": username}, request)
                request.is_counted = True  # type: ignore[attr-defined]
                raise AxesBackendPermissionDenied("name and password do not belong together")
        finally:
            _turns.release()
        return user


class Throttle(AxesDatabaseHandler):
    """Axes' counts, with a limit of its own for each."""

    def user_login_failed(
        self, sender: Any, credentials: Any, request: Any = None, **kwargs: Any
    ) -> None:
        """Counts a failure, once."""
        if not getattr(request, "is_counted", False):
            super().user_login_failed(sender, credentials, request, **kwargs)

    def get_failures(self, request: HttpRequest, credentials: Any = None) -> int:
        """The failures of this name from this address; the slow counts in the same measure."""
        pair, name, address = (
            attempts.aggregate(all=Sum("failures_since_start"))["all"] or 0
            for attempts in self.get_user_attempts(request, credentials)
        )
        limit = settings.AXES_FAILURE_LIMIT
        slow = max(name * limit // NAME_LIMIT, address * limit // ADDRESS_LIMIT)
        if slow >= limit > pair and _is_at_home(request, credentials):
            return int(pair)
        return int(max(pair, slow))


def remember(request: HttpRequest, username: str) -> None:
    """Keep that somebody signed in without a session: for a token."""
    AccessLog.objects.create(
        username=username,
        ip_address=address_of(request),
        user_agent=request.headers.get("User-Agent", "")[:255],
        http_accept=request.headers.get("Accept", "")[:1025],
        path_info=request.path[:255],
    )


def address_of(request: HttpRequest) -> str | None:
    """Who is asking, as the server says it, and no header: an IPv4 address, or the first of the
    IPv6 addresses of one house.
    """
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), ONE_HOUSE), strict=False).network_address)


def client_words(username: Any, address: Any, agent: Any, path: Any, request: HttpRequest) -> str:
    """A client in the log: by name and address, so that an attack can be traced. No line can be
    forged by what somebody typed as their name.
    """
    return json.dumps({"username": username, "address": address, "path": path})


def _is_at_home(request: HttpRequest, credentials: Any) -> bool:
    return AccessLog.objects.filter(
        username=(credentials or {}).get("username"),
        ip_address=address_of(request),
        attempt_time__gte=timezone.now() - AT_HOME,
    ).exists()
