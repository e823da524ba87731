"""Classify an interruption: what the run was at when Stop came (R10).

Guarantees one word per stop, the most serious that holds, decided under the run's lock before
anything is changed; it is kept on the StopRequest and says how the interruption is closed.
"""

from agentruns.models import Run, StopRequest
from agentruns.states import NOT_YET_IN_FLIGHT
from tools import prepared
from tools.contract import Tier

OPEN_CALLS = "SELECT tier, state FROM agentruns_toolcall WHERE run_id = %s AND state = ANY(%s)"
OUTSIDE = ("in_flight", "in_doubt")

Interrupted = StopRequest.Interrupted


def interruption(run: Run) -> StopRequest.Interrupted:
    """What Stop would interrupt right now."""
    open_calls = set(prepared.run(OPEN_CALLS, [run.pk, [*NOT_YET_IN_FLIGHT, *OUTSIDE]]))
    outside = {tier for tier, state in open_calls if state in OUTSIDE}
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
