"""Where a live socket may be opened from: a page of this very site."""

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings


class OwnPagesOnly:
    """Refuse a socket whose page came from another host or another port.

    No rule of the browser's keeps a foreign page from opening a socket, and cookies go to every
    port of a host: what else runs on this machine must not read along. Goes before
    AllowedHostsOriginValidator, which knows the names of this site, and trips over some origins.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        inner = self.inner if _is_own(dict(scope["headers"])) else WebsocketDenier.as_asgi()
        return await inner(scope, receive, send)


def _is_own(headers: dict[bytes, bytes]) -> bool:
    """Whether the page is of the host that was asked, or of one that forms may come from, too."""
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    host = headers.get(b"host", b"").decode("latin-1").lower()
    # The scheme is left aside: a proxy that ends TLS speaks plain HTTP to us.
    return _place(origin) == host != "" or origin in settings.CSRF_TRUSTED_ORIGINS


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
