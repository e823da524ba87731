"""When a sweeper was at work, by what only a sweeper records."""

from array import array
from bisect import bisect_right
from datetime import datetime
from functools import cached_property

from agentruns.models import LedgerEvent
from agentruns.protocol.ledger import SWEEPER

SWEPT = ("lease.taken_away", "call.in_doubt", "call.expired")
CHUNK = 2000


class Sweeps:
    """Read when it is first asked, which is only if some run came to rest late.

    A sweep that found nothing to do leaves no trace, so this never says that a sweeper was away.
    """

    def seen_between(self, after: datetime, before: datetime) -> bool:
        """Whether a sweeper is known to have been at work between the two moments."""
        place = bisect_right(self._times, after.timestamp())
        return place < len(self._times) and self._times[place] < before.timestamp()

    @cached_property
    def _times(self) -> "array[float]":
        # Eight bytes each, so that a ledger of any size has room.
        found = LedgerEvent.objects.filter(kind__in=SWEPT, actor=SWEEPER).order_by("at")
        times = found.values_list("at", flat=True).iterator(chunk_size=CHUNK)
        return array("d", (at.timestamp() for at in times if at is not None))
