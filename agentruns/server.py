"""How the web server speaks HTTP: as uvicorn does, with a deadline for the head of a request.

Without one, connections over which half a head was sent would stay open for ever, each a file of
this process, until there is none left for a Stop.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_LIMIT = 10.0  # seconds from the connection, or from a request's first letter


class Protocol(HttpToolsProtocol):
    """For uvicorn's `--http`."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._expect_nothing()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_LIMIT, self.transport.abort)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
