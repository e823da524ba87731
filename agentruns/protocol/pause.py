"""Pause: nothing new starts, nothing is lost, and a person lets it go on (protocol §9, R09).

Guarantees that no call passes the gate while its run is paused, and that none is refused for it:
what is in flight reports, the model's answer is written to its end, and there it stays. What
a run started is paused with it.
"""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import doorbell, pausepoints
from agentruns.errors import WrongState
from agentruns.models import Run
from agentruns.protocol.advance import advance
from agentruns.protocol.ledger import lock_tree, move_run, person

PAUSED = "paused"


def pause_run(run_id: str, *, by: Any, reason: str = "") -> Run:
    """Hold the run and those that it started; the same again if it is paused already.

    Raises NotFound, or WrongState if the run has ended or is stopping.
    """
    pausepoints.reach(run_id, "pause:begin")
    with transaction.atomic(durable=True):
        run, *descendants = lock_tree(run_id)
        if not run.is_active:
            raise WrongState(_("Only a run that is at work can be paused."), status=run.status)
        for each in [run, *descendants]:
            if each.is_active and each.suspended_reason != PAUSED:
                hold(each, actor=person(by), reason=PAUSED, why=reason)
    pausepoints.reach(run_id, "pause:committed")
    return run


def unpause_run(run_id: str, *, by: Any) -> Run:
    """Let the run, and those that it started, go on from where they are.

    Raises NotFound, or WrongState if the run is not paused.
    """
    with transaction.atomic(durable=True):
        run, *descendants = lock_tree(run_id)
        if run.suspended_reason != PAUSED:
            raise WrongState(_("This run is not paused."), status=run.status)
        for each in [run, *descendants]:
            if each.suspended_reason == PAUSED:
                let_go(each, actor=person(by))
    pausepoints.reach(run_id, "pause:ended")
    return run


def hold(run: Run, *, actor: str, reason: str, **data: Any) -> None:
    """Under the run's lock: suspend it for `reason`, whatever else it was waiting for."""
    move_run(run, "suspend", actor=actor, data={"reason": reason} | data, suspended_reason=reason)


def let_go(run: Run, *, actor: str) -> None:
    """Under the run's lock: it is held no longer, and does what comes next."""
    if run.started_at is None:
        move_run(run, "wait_again", actor=actor, suspended_reason="")
        doorbell.ring_task("agentruns.tasks.think", run.pk, run.epoch)
    else:
        move_run(run, "unsuspend", actor=actor, suspended_reason="")
        advance(run)
