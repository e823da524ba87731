"""Take a request's body whole before anybody is asked to answer it.

Who sends half of a request and then nothing holds a connection, and no more: no thread, no
connection to the database, no place on the way to the pages.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agentruns.api.errors import BodyTooLarge, BodyTooSlow
from agentruns.errors import PagesBusy
from agentruns.passing import Receive

SMALL = 64_000  # bytes: what is asked of Stop is always taken
ALL = 64_000_000  # bytes of larger bodies, of all requests together


class Bodies:
    """The bodies that are held at the same time.

    `patience`: seconds in which one has to be there. `most`: bytes of one.
    """

    def __init__(self, patience: float, most: int) -> None:
        self._patience = patience
        self._most = most
        self._held = 0

    @asynccontextmanager
    async def whole(self, receive: Receive) -> AsyncIterator[Receive]:
        """A `receive` that has the whole body already. Raises BodyTooSlow, BodyTooLarge, or
        PagesBusy if there are too many large ones.
        """
        messages: list[Any] = []
        size = 0
        try:
            try:
                async with asyncio.timeout(self._patience):
                    while not messages or messages[-1].get("more_body"):
                        messages.append(await receive())
                        more = len(messages[-1].get("body", b""))
                        size, self._held = size + more, self._held + more
                        self._check(size)
            except TimeoutError:
                raise BodyTooSlow from None
            yield _then(messages, receive)
        finally:
            self._held -= size

    def _check(self, size: int) -> None:
        if size > self._most:
            raise BodyTooLarge
        if size > SMALL and self._held > ALL:
            raise PagesBusy


def _then(messages: list[Any], receive: Receive) -> Receive:
    """First these, then what comes."""
    kept = iter(messages)

    async def received() -> Any:
        for message in kept:
            return message
        return await receive()

    return received
