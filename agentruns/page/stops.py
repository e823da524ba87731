"""Every stop of a run: what it interrupted, and whether the run was continued after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agentruns.models import LedgerEvent, Run, StopRequest
from agentruns.page.moments import stop_moment
from agentruns.page.people import names_of
from agentruns.page.words import name_of, span, when_exactly

# What Stop met, in one sentence (R10). True at the moment of Stop, and at any later one.
INTERRUPTED: dict[str, Any] = {
    "before_start": gettext_lazy("It was stopped before it began."),
    "generating": gettext_lazy("The model was at work: what it had written is kept."),
    "in_read": gettext_lazy("It was only reading: that has changed nothing."),
    "before_effect": gettext_lazy("It was about to act: what had not started was dropped."),
    "after_effect": gettext_lazy(
        "An action was on its way. It still reports how it ended, or is in doubt; "
        "it is not sent again."
    ),
    "waiting": gettext_lazy("It was waiting for a person: nothing was under way."),
}
HELD_BACK = gettext_lazy("It was about to act: what had not started was held back for a person.")


@dataclass(frozen=True)
class PastStop:
    """One stop. `again_at`, `again_by`: the run was continued after it, when and by whom."""

    stop: StopRequest
    again_at: datetime | None = None
    again_by: str = ""

    @property
    def closing(self) -> str:
        return closing(self.stop)

    @property
    def facts(self) -> list[str]:
        """Who, when, how long it took, and how it went on."""
        words = {
            "name": name_of(self.stop.requested_by),
            "time": when_exactly(self.stop.requested_at),
        }
        said = [_("Stopped by %(name)s at %(time)s") % words]
        if self.stop.signal == "budget":
            said = [_("Stopped at %(time)s: its budget was used up") % words]
        if has_words(self.stop):
            said.append(f"“{self.stop.reason}”")
        if self.stop.settled_at:
            length = span(self.stop.settled_at - self.stop.requested_at)
            said.append(_("settled after %(span)s") % {"span": length})
        if self.again_at:
            words = {"name": self.again_by, "time": when_exactly(self.again_at)}
            said.append(_("continued by %(name)s at %(time)s") % words)
        return said


def has_words(stop: StopRequest) -> bool:
    """Whether its reason is what somebody wrote, and not a name of ours."""
    return stop.reason != "" and stop.signal not in ("budget", "dependency")


def closing(stop: StopRequest) -> str:
    """What the stop interrupted, in one sentence; "" where nobody knows, or it came too late."""
    if stop.interrupted == "before_effect" and stop.pending == StopRequest.Pending.FREEZE:
        return str(HELD_BACK)
    return str(INTERRUPTED.get(stop.interrupted, ""))


def stops_of(run: Run) -> list[StopRequest]:
    """Every request to stop the run, the newest first."""
    return list(StopRequest.objects.filter(run=run).select_related("requested_by"))


def past_stops(run: Run, stops: Sequence[StopRequest]) -> list[PastStop]:
    """The stops that took effect, each with how the run went on after it; the newest first."""
    effective = [stop for stop in stops if stop_moment(stop)]
    if not effective:
        return []
    events = list(LedgerEvent.objects.filter(run=run, kind="run.requeued").order_by("seq"))
    names = names_of(event.actor for event in events)
    found = []
    for stop in effective:
        after = (event for event in events if event.at and event.at > stop.requested_at)
        again = next(after, None)
        found.append(PastStop(stop, again.at, names[again.actor]) if again else PastStop(stop))
    return found
