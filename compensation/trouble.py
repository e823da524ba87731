"""What went wrong with an attempt to undo, in words for the person who will read it."""

import httpx2
from django.utils.translation import gettext as _

from tools.errors import ToolError


def in_words(error: Exception) -> str:
    """A sentence; of what nobody foresaw, what it says of itself."""
    match error:
        case ToolError():
            return str(error)
        case httpx2.HTTPStatusError(response=response):
            words = {"host": response.url.host, "status": response.status_code}
            return _("%(host)s answered with an error (%(status)s).") % words
        case httpx2.TimeoutException():
            return _("No answer came in time.")
        case httpx2.TransportError():
            return _("The connection failed: %(why)s") % {"why": error}
    return f"{type(error).__name__}: {error}"
