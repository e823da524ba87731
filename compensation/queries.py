"""The read side of undo: where each step stands, and what undo would do. Writes nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from agentruns.models import Run, ToolCall
from agentruns.queries import undo_of
from agentruns.states import CALL, MAY_TURN_UP
from compensation.models import Compensation
from compensation.states import LIVING, UNSETTLED
from tools import registry


@dataclass(frozen=True)
class PreviewItem:
    """What undo would do with one call, in plain words, or why it would not.

    `code`: possible, undone, under_way, not_needed, impossible, in_doubt, in_flight, not_landed.
    """

    call: ToolCall
    code: str
    text: str

    @property
    def can_undo(self) -> bool:
        return self.code == "possible"


def latest_steps(run: Run) -> dict[str, Compensation]:
    """The latest undo step of each call of the run that has one, by the call's id.

    The one that undid it is the latest, also where its receipt came after another had been tried.
    """
    steps = Compensation.objects.filter(call__run=run).select_related(
        "call", "request__requested_by", "request__stopped_by", "settled_by"
    )
    by_time = list(steps.order_by("created_at", "position"))
    undone = [step for step in by_time if step.state == "undone"]
    return {step.call_id: step for step in [*by_time, *undone]}


def needs_person() -> QuerySet[Compensation]:
    """The steps that did not work and that nobody has settled: of a call that still stands, and
    that no later step is about.
    """
    later = Compensation.objects.filter(
        call=OuterRef("call"), created_at__gt=OuterRef("created_at")
    )
    standing = Compensation.objects.filter(state__in=UNSETTLED, call__undo_state="")
    return standing.filter(~Exists(later))


def living_steps(run: Run) -> list[Compensation]:
    """The steps that are still to be done, in the order in which they are: the call that landed
    last is undone first, whoever asked for it when.
    """
    steps = Compensation.objects.filter(call__run=run, state__in=LIVING)
    return list(
        steps.select_related("call", "request__requested_by").order_by(
            "-call__ended_at", "-call__number"
        )
    )


def in_undo_order(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The last to land comes first; what never landed comes last."""
    return sorted(
        calls,
        key=lambda call: (call.state == "landed", call.ended_at or call.proposed_at, call.number),
        reverse=True,
    )


def foresee(call: ToolCall, step: Compensation | None) -> PreviewItem:
    """What undo would do with `call`, whose latest undo step is `step`."""
    if step is not None and step.is_living:
        return PreviewItem(call, "under_way", _("This is being undone already."))
    code = undo_of(call) or _why_not(call)
    return PreviewItem(call, code, _sentence(call, code))


def stands(item: PreviewItem, steps: Mapping[str, Compensation]) -> bool:
    """Whether the undo of this call has been asked for before, and holds."""
    return item.code in ("under_way", "undone") and item.call.pk in steps


def _why_not(call: ToolCall) -> str:
    return call.state if call.state in ("in_doubt", "in_flight") else "not_landed"


def _sentence(call: ToolCall, code: str) -> str:
    registered = registry.get(call.tool)
    note: Any = registered.undo_note if registered else ""
    if code == "possible":
        return str(note or _("Will be undone."))
    if code == "impossible":
        return str(note or _("This cannot be undone from here."))
    return {
        "undone": _("Undone already."),
        "not_needed": _("This only read something: there is nothing to undo."),
        "in_doubt": _("Nobody knows yet whether this happened. That has to be found out first."),
        "in_flight": _("This is still under way."),
        "not_landed": _("This counts as not done, so there is nothing to undo.")
        if call.reason in MAY_TURN_UP
        else _("This did not happen: %(state)s.") % {"state": CALL.states[call.state].label},
    }[code]
