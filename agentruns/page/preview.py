"""What undo would do, before it does it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
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
    warning: str = ""


def preview_of(run: Run, call_ids: Sequence[str]) -> Preview:
    """The preview of these calls of the run. Raises BadInput for one that is not of it."""
    items = preview(run, call_ids)
    doable = [item for item in items if item.can_undo]
    confirm = ngettext("Undo this action", "Undo these %(n)d actions", len(doable)) % {
        "n": len(doable)
    }
    others = [item for item in items if not item.can_undo]
    return Preview(doable, others, confirm, _warning(run, doable))


def _warning(run: Run, doable: Sequence[PreviewItem]) -> str:
    """That something later of the same kind stays, which may build on what would be undone."""
    if not doable:
        return ""
    chosen = {item.call.pk for item in doable}
    first: dict[str, int] = {}  # of each kind
    for call in (item.call for item in doable):
        first[call.tool] = min(call.number, first.get(call.tool, call.number))
    others = [item.call for item in preview(run) if item.can_undo and item.call.pk not in chosen]
    stays = [call for call in others if call.number > first.get(call.tool, call.number)]
    if not stays:
        return ""
    said = _("This was done later, and stays: %(calls)s. What it builds on may have to stay, too.")
    return said % {"calls": "; ".join(call.in_words for call in stays)}
