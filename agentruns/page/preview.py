"""What undo would do, before it does it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import ngettext

from agentruns.models import Run
from compensation.queries import PreviewItem
from compensation.saga import preview


@dataclass(frozen=True)
class Preview:
    """What would be undone, in the order in which it would, and what would not, with why."""

    doable: list[PreviewItem]
    others: list[PreviewItem]
    confirm: str


def preview_of(run: Run, call_ids: Sequence[str]) -> Preview:
    """The preview of these calls of the run. Raises BadInput for one that is not of it."""
    items = preview(run, call_ids)
    doable = [item for item in items if item.can_undo]
    confirm = ngettext("Undo this action", "Undo these %(n)d actions", len(doable)) % {
        "n": len(doable)
    }
    return Preview(doable, [item for item in items if not item.can_undo], confirm)
