"""Undo, as the ledger sees it: when a run allows it, and the mark on what was undone (§10).

Guarantees that only a landed call is marked, once. How an undo is carried out is the business of
the compensation app, which calls this under the run's lock.
"""

from django.utils.translation import gettext as _

from agentruns.errors import WrongState
from agentruns.models import Run, ToolCall
from agentruns.protocol.ledger import clock, record, save
from agentruns.states import FINISHED_RUN, STOPPED_RUN

ALLOWS_UNDO = (*STOPPED_RUN, *FINISHED_RUN, "suspended")


def must_not_act(run: Run) -> None:
    """Raise WrongState while the run acts, or may still begin to: undo never races an effect."""
    if run.status not in ALLOWS_UNDO:
        raise WrongState(
            _("The run is still at work. Stop it, or let it finish, before you undo anything."),
            status=run.status,
        )


def mark_undone(run: Run, call: ToolCall, *, actor: str) -> None:
    """The call's effect is no longer in the world. Raises WrongState unless the call landed."""
    if call.state != "landed" or call.undo_state == ToolCall.UndoState.UNDONE:
        raise WrongState(_("There is nothing to undo here."), call_id=call.pk, state=call.state)
    save(call, undo_state=ToolCall.UndoState.UNDONE, undone_at=clock().now)
    record(run, "call.undone", actor=actor, call=call)
