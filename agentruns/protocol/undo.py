"""Undo, as the ledger sees it: when a run allows it, and the mark on what was undone (§10).

Guarantees that only a landed call is marked, once. How an undo is carried out is the business of
the compensation app, which calls this under the run's lock.
"""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from agentruns import doorbell
from agentruns.errors import WrongState
from agentruns.models import Agent, Run, StopRequest, ToolCall
from agentruns.protocol.ledger import CALLS, clock, record, save, stop_of
from agentruns.states import FINISHED_RUN, STOPPED_RUN
from tools.contract import Tier
from tools.models import Tool
from tools.policy import auto_undo

ALLOWS_UNDO = (*STOPPED_RUN, *FINISHED_RUN, "suspended")
STANDING = ("landed", "in_doubt")  # what stands in the world, or may
TO_UNDO = f"""
WHERE t.run_id = %s AND t.tier = '{Tier.REVERSIBLE}' AND t.state = ANY(%s)
  AND t.undo_state <> '{ToolCall.UndoState.UNDONE}'"""


def must_not_act(run: Run) -> None:
    """Raise WrongState while the run acts, or may still begin to: undo never races an effect."""
    if run.status not in ALLOWS_UNDO:
        raise WrongState(
            _("The run is still at work. Stop it, or let it finish, before you undo anything."),
            status=run.status,
        )


def undone_by_itself(run: Run, calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Those of the calls that agent and tool want undone after a Stop without being asked for:
    reversible when they landed. One in doubt is among them, and has to be found out first.
    """
    wanted = [
        call
        for call in calls
        if call.tier == Tier.REVERSIBLE
        and call.state in STANDING
        and call.undo_state != ToolCall.UndoState.UNDONE
    ]
    says = auto_undo({call.tool for call in wanted}) if wanted else {}
    return [call for call in wanted if is_by_itself(run.agent, says[call.tool])]


def is_by_itself(agent: Agent, says: str) -> bool:
    """Whether the agent's reversible steps of a tool, whose policy `says` so, are undone by
    themselves.
    """
    if says == Tool.AutoUndo.AGENT:
        return agent.auto_undo == Agent.AutoUndo.REVERSIBLE
    return says == Tool.AutoUndo.ALWAYS


def is_undo_due(run: Run, stop: StopRequest) -> bool:
    """Whether undo follows by itself the `stop` that the run is under. Not where somebody goes on
    with what the stop has kept: a person who took the run over, or who raises its limit.
    """
    if stop.pending == StopRequest.Pending.FREEZE or stop.signal == "handoff":
        return False
    # A Stop waits for this, so the database picks; a run may have thousands of calls.
    return bool(undone_by_itself(run, CALLS.all(TO_UNDO, [run.pk, list(STANDING)])))


def due_stop(run: Run) -> StopRequest | None:
    """The stop that the run is under, if undo is due after it."""
    stop = stop_of(run)
    return stop if stop and stop.undo_is_due else None


def take_due(run: Run) -> bool:
    """Under the run's lock: nothing is due any more; whether anything was."""
    return bool(StopRequest.objects.filter(run=run, undo_is_due=True).update(undo_is_due=False))


def ring_if_due(run: Run) -> None:
    """Under the lock of a run that has settled: what is due is on record; have it begin."""
    if due_stop(run):
        doorbell.ring_task("compensation.tasks.undo_after_stop", run.pk)


def mark_undone(run: Run, call: ToolCall, *, actor: str, **data: Any) -> None:
    """The call's effect is no longer in the world; `data` goes into the event.

    Raises WrongState unless the call landed.
    """
    if call.state != "landed" or call.undo_state == ToolCall.UndoState.UNDONE:
        raise WrongState(_("There is nothing to undo here."), call_id=call.pk, state=call.state)
    sets = save(call, undo_state=ToolCall.UndoState.UNDONE, undone_at=clock().now)
    record(run, "call.undone", actor=actor, call=call, sets=sets, **data)
