"""The ASGI entry: pages and REST through Django, live progress through Channels."""

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
from agentruns.urls import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": OwnPagesOnly(
            AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
        ),
    }
)
