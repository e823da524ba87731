"""Moments in relation to Stop: what crossed it, and when what had no outcome got its doubt.

A run that was continued after a stop may be stopped again, so there may be several of them.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from agentruns.models import LedgerEvent, Run, StopRequest, ToolCall
from agentruns.page.words import clock, span
from agentruns.states import MAY_TURN_UP


def stop_moment(stop: StopRequest | None) -> datetime | None:
    """When Stop was requested, if Stop it was that ended the run."""
    if stop is None or stop.won_by != StopRequest.WonBy.STOP:
        return None
    return stop.requested_at


def stop_in_force(run: Run, stops: Sequence[StopRequest]) -> StopRequest | None:
    """The stop that the run is under, or that came too late for it; None once it was continued."""
    return next((stop for stop in stops if stop.epoch == run.epoch), None)


def stop_after(epoch: int, stops: Sequence[StopRequest]) -> StopRequest | None:
    """The first stop that took effect after what began in `epoch`."""
    later = [stop for stop in stops if stop.epoch > epoch and stop_moment(stop)]
    return min(later, key=lambda stop: stop.epoch, default=None)


def crossing(call: ToolCall, stops: Sequence[StopRequest]) -> str:
    """“left 0.9 s before Stop, arrived 1.2 s after”; "" for a call that crossed none of them."""
    left, ended = call.gate_passed_at, call.ended_at
    moments = [moment for stop in stops if (moment := stop_moment(stop))]
    moment = next((m for m in sorted(moments) if left and left <= m), None)
    if moment is None or left is None or (ended and ended <= moment):
        return ""
    before = span(moment - left)
    if ended is None:
        return _("left %(before)s before Stop") % {"before": before}
    words = {"before": before, "after": span(ended - moment)}
    if call.state == "landed" and call.doubted_at is None:
        return _("left %(before)s before Stop, arrived %(after)s after") % words
    if call.state == "landed":
        return _("left %(before)s before Stop, known to have happened %(after)s after") % words
    if call.reason in MAY_TURN_UP:
        return _("left %(before)s before Stop, counts as not done since %(after)s after") % words
    return _("left %(before)s before Stop, known to have failed %(after)s after") % words


def doubts_of(run: Run) -> dict[str, datetime]:
    """When each call of the run last fell into doubt, by the call's id."""
    events = LedgerEvent.objects.filter(run=run, kind="call.in_doubt").order_by("seq")
    return {event.call_id: event.at for event in events if event.call_id and event.at}


def cancellations_of(run: Run) -> dict[str, list[LedgerEvent]]:
    """What was recorded when an outside system was asked to stop a call, by the call's id."""
    found: dict[str, list[LedgerEvent]] = defaultdict(list)
    for event in LedgerEvent.objects.filter(run=run, kind="call.cancellation").order_by("seq"):
        found[str(event.call_id)].append(event)
    return found


def asked_to_stop(events: Sequence[LedgerEvent]) -> str:
    """“The server was asked to stop it at 10:00:12; it has not confirmed”; "" if it was not."""
    if not events:
        return ""
    time = {"time": clock(events[0].at)}
    match events[-1].data.get("status"):
        case "acknowledged":
            return _("The server was asked to stop it at %(time)s, and says that it has") % time
        case "sent":
            return _("The server was asked to stop it at %(time)s; it has not confirmed") % time
    return _("The server was asked to stop it at %(time)s; nobody knows whether it heard") % time
