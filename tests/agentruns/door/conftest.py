"""Both kinds of clients: programs with a token, and browsers with a session."""

from tests.agentruns.api.conftest import api
from tests.agentruns.pages.conftest import browser

__all__ = ["api", "browser"]
