"""Classify an interruption: what the run was at when Stop came (R10).

Guarantees one word per stop, the most serious that holds, decided under the run's lock before
anything is changed; it is kept on the StopRequest and says how the interruption is closed.
"""

from agentruns.models import Run, StopRequest, ToolCall
from agentruns.states import NOT_YET_IN_FLIGHT
from tools.contract import Tier

Interrupted = StopRequest.Interrupted


def interruption(run: Run) -> StopRequest.Interrupted:
    """What Stop would interrupt right now."""
    open_calls = set(
        ToolCall.objects.filter(
            run=run, state__in=(*NOT_YET_IN_FLIGHT, "in_flight", "in_doubt")
        ).values_list("tier", "state")
    )
    outside = {tier for tier, state in open_calls if state in ("in_flight", "in_doubt")}
    if outside - {Tier.READ_ONLY}:
        return Interrupted.AFTER_EFFECT
    if outside:
        return Interrupted.IN_READ
    if run.lease_holder:
        return Interrupted.GENERATING
    if run.status == "suspended":
        return Interrupted.WAITING
    if open_calls:
        return Interrupted.BEFORE_EFFECT
    return Interrupted.BEFORE_START if run.status == "queued" else Interrupted.NOTHING
