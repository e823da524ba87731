"""The ASGI entry: pages and REST through Django, live progress through Channels.

`application` serves all of it by itself. `behind_front` does so for the process in front of it
(front.py), which says where a request came from.
"""

import os
import warnings

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

# whitenoise hands files out by plain iterators, which Django then reads in a thread: as intended.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentruns.settings")
django_application = get_asgi_application()

from agentruns.origins import OwnPagesOnly  # noqa: E402  (apps must be loaded first)
from agentruns.passing import Receive, Scope, Send, told  # noqa: E402
from agentruns.urls import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": OwnPagesOnly(
            AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
        ),
    }
)


async def behind_front(scope: Scope, receive: Receive, send: Send) -> None:
    """The same, on a socket that nobody but the process in front can reach."""
    await application(scope if scope["type"] == "lifespan" else told(scope), receive, send)
