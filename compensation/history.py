"""What the ledger says of one undo step, in words: when, what, who, why."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agentruns.models import LedgerEvent
from agentruns.page.people import names_of
from compensation.models import Compensation
from compensation.states import REASONS

WORDS: dict[str, Any] = {
    "undo.requested": gettext_lazy("somebody asked for it"),
    "undo.started": gettext_lazy("attempt begun"),
    "undo.postponed": gettext_lazy("did not work, put off"),
    "undo.lapsed": gettext_lazy("nobody reported, to be done again"),
    "undo.landed": gettext_lazy("undone"),
    "undo.found_changed": gettext_lazy("left alone: it was changed since"),
    "undo.found_impossible": gettext_lazy("cannot be undone"),
    "undo.failed": gettext_lazy("given up"),
    "undo.stopped": gettext_lazy("the undo was stopped"),
    "undo.dropped": gettext_lazy("dropped: the undo was stopped"),
    "undo.done_by_hand": gettext_lazy("undone by hand"),
    "undo.left": gettext_lazy("left as it is"),
    "undo.repeated": gettext_lazy("a report came late, and changed nothing"),
}


@dataclass(frozen=True)
class Line:
    """One event. `why` may be empty."""

    at: datetime | None
    what: str
    who: str
    why: str


def history_of(step: Compensation) -> list[Line]:
    """The events of the step and of its request, in order."""
    of_step = Q(call=step.call, data__undo=step.pk)
    of_request = Q(kind="undo.requested", data__request=step.request_id)
    of_stop = Q(kind="undo.stopped", data__requests__contains=[step.request_id])
    of_run = LedgerEvent.objects.filter(of_step | of_request | of_stop, run=step.request.run_id)
    events = list(of_run.order_by("seq"))
    names = names_of(event.actor for event in events)
    return [
        Line(
            event.at,
            str(WORDS.get(event.kind, event.kind)),
            names[event.actor],
            " ".join(_why(event)),
        )
        for event in events
    ]


def _why(event: LedgerEvent) -> Iterator[str]:
    data = event.data
    if attempt := data.get("attempt"):
        yield _("Attempt %(n)s.") % {"n": attempt}
    if (pause := data.get("again_after")) is not None:
        yield _("Again after %(n)s s.") % {"n": pause}
    if data.get("stop_epoch") is not None:
        yield _("It followed from the Stop by itself.")
    if (reason := data.get("reason")) and reason not in ("changed", "impossible"):
        yield str(REASONS.get(reason, reason))
    if why := data.get("why"):
        yield f"“{why}”"
