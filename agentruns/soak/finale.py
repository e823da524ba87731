"""The end of a soak: everything is stopped, and has to come to rest."""

import time
from collections.abc import Iterator
from functools import partial

from django.conf import settings
from django.db import connection
from django.db.models import Q

from agentruns.drill.patience import AWAY, patiently
from agentruns.models import Run, StopRequest, ToolCall
from agentruns.protocol.stop import request_stop
from agentruns.soak.people import People
from agentruns.soak.player import SURE_AFTER, open_doubts
from agentruns.states import ACTIVE_RUN, STOPPING_RUN
from compensation.models import Compensation
from compensation.states import LIVING

REASON = "end of the soak"
GRACE = 75.0  # seconds beyond the drain deadline: a look-up or an undo may pause for half of it
LOOK_EVERY = 0.5


def stop_everything(people: People) -> int:
    """Press Stop on whatever still acts; returns how many that were."""
    acting = patiently(
        lambda: list(Run.objects.filter(status__in=ACTIVE_RUN).values_list("pk", flat=True))
    )
    for run_id in acting:
        patiently(partial(request_stop, run_id, by=people.owner, reason=REASON))
    return len(acting)


def settle(people: People) -> bool:
    """Wait until nothing moves any more; doubts that nobody can resolve get their answer."""
    until = time.monotonic() + settings.DRAIN_DEADLINE + GRACE
    seen: dict[str, float] = {}
    while time.monotonic() < until:
        try:
            for call in open_doubts():
                since = seen.setdefault(call.pk, time.monotonic())
                if time.monotonic() - since > SURE_AFTER:
                    people.do(people.answer, call.pk).result()
            if not any(True for _ in unsettled()):
                return True
        except AWAY:
            pass
        finally:
            connection.close()
        time.sleep(LOOK_EVERY)
    return False


def unsettled() -> Iterator[tuple[str, str]]:
    """What has not come to rest: the run, and what is wrong with it."""
    moving = Q(status__in=(*ACTIVE_RUN, *STOPPING_RUN)) | ~Q(lease_holder="")
    for run in Run.objects.filter(moving):
        yield run.pk, f"is {run.status}"
    for call in ToolCall.objects.filter(state__in=("in_flight", "in_doubt")):
        yield call.run_id, f"call {call.pk} is {call.state}"
    for run in Run.objects.filter(status="stopped_dirty").exclude(calls__state="in_doubt"):
        yield run.pk, "is stopped_dirty, and nothing is in doubt"
    for step in Compensation.objects.filter(state__in=LIVING).select_related("call"):
        yield step.call.run_id, f"undo of {step.call_id} is {step.state}"


def slow_to_settle(grace: float) -> Iterator[tuple[str, str]]:
    """Stops that took longer than I10 allows."""
    limit = settings.DRAIN_DEADLINE + grace
    for stop in StopRequest.objects.filter(won_by=StopRequest.WonBy.STOP):
        if stop.settled_at is None:
            yield stop.run_id, f"the stop of epoch {stop.epoch} never settled"
        elif (took := (stop.settled_at - stop.requested_at).total_seconds()) > limit:
            yield stop.run_id, f"settled {took:.1f} s after the stop"
