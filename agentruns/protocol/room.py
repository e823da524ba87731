"""Room for a run: how many one person may have under way, and start in a minute.

Guarantees that no number of requests at the same time makes more than that: whoever counts holds
the owner's lock until the run is there. Runs that a run starts count for its owner.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from agentruns.errors import TooManyRuns
from agentruns.models import Run
from agentruns.protocol.fair import lock_owner
from agentruns.protocol.ledger import clock
from agentruns.states import ACTIVE_RUN

MINUTE = timedelta(minutes=1)
ASK_AGAIN = 30  # seconds; nobody knows when a run will have ended


def must_have_room(owner: Any, *, starts: bool) -> None:
    """Raises TooManyRuns if the person may have no further run now. `starts`: it is a new one, and
    none that is continued. Within the transaction that makes it active.
    """
    lock_owner(owner.pk)
    most = settings.RUNS_PER_PERSON
    if most and Run.objects.filter(owner=owner, status__in=ACTIVE_RUN).count() >= most:
        raise TooManyRuns(
            _("%(n)d of your runs have not ended yet, and that is the limit. Stop one first.")
            % {"n": most},
            limit=most,
            retry_after=ASK_AGAIN,
        )
    most = settings.STARTS_PER_MINUTE
    if most and starts:
        _must_not_hurry(owner, most)


def _must_not_hurry(owner: Any, most: int) -> None:
    now = clock().now
    latest = Run.objects.filter(owner=owner, created_at__gt=now - MINUTE).order_by("-created_at")
    counted = list(latest.values_list("created_at", flat=True)[:most])
    if len(counted) < most:
        return
    seconds = max(1, round((counted[-1] + MINUTE - now).total_seconds()))
    raise TooManyRuns(
        _("You have started %(n)d runs within a minute. Start the next one in %(seconds)d seconds.")
        % {"n": most, "seconds": seconds},
        limit=most,
        retry_after=seconds,
    )
