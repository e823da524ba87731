"""The undo's own gate: passed before every attempt of every step (protocol §10)."""

from collections.abc import Callable

from django.utils.translation import gettext as _

from agentruns.errors import WrongState
from agentruns.models import Run
from agentruns.protocol.heads import CUT_BACK, is_whole
from agentruns.protocol.undo import ALLOWS_UNDO
from agentruns.queries import undo_of
from agentruns.rights import may_undo
from compensation.models import Compensation
from compensation.queries import living_steps


def must_not_be_undoing(run: Run) -> None:
    """Raise WrongState while what the run did is being undone: undo never races an effect."""
    if living_steps(run):
        raise WrongState(
            _("What it did is being undone. Wait for the end of that, or stop the undo."),
            status=run.status,
        )


def refusal(run: Run, step: Compensation) -> str:
    """Why the step may not be attempted, as a code of states.REASONS; "" if it may.

    The run is locked, and `step` was read under that lock, with its call and its request.
    """
    return next((code for code, holds in CHECKS if not holds(run, step)), "")


# A tool that an admin has switched off may still be undone: what was switched off is what the
# tool does, and undo takes that back.
CHECKS: list[tuple[str, Callable[[Run, Compensation], bool]]] = [
    # A step that was undone already may be among what was cut off.
    (CUT_BACK, lambda run, step: is_whole(run)),
    ("run_acts", lambda run, step: run.status in ALLOWS_UNDO),
    ("not_allowed", lambda run, step: may_undo(step.request.requested_by, run)),
    ("nothing_to_undo", lambda run, step: undo_of(step.call) == "possible"),
]
