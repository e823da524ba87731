"""Where a run stands that waits, or may not do everything any more: why, and until when."""

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agentruns.models import LedgerEvent, Run, ToolCall
from agentruns.page import workers
from agentruns.page.people import names_of
from agentruns.page.spending import Spending
from agentruns.page.words import clock
from agentruns.queries import Groups


@dataclass(frozen=True)
class Notice:
    """A line across the page. `kind`: workers, paused, budget or degraded."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class Wait:
    """A sentence at the top of the page, and the calls, in order, that it speaks of."""

    sentence: str
    calls: list[ToolCall]

    @property
    def first(self) -> ToolCall | None:
        """The one to go to."""
        return self.calls[0] if self.calls else None


def notices_of(run: Run, groups: Groups, spending: Spending) -> list[Notice]:
    """What stands above everything else, while the run may act."""
    if not run.is_active:
        return []
    found = []
    if workers.seem_away():
        words = _(
            "No worker has taken up waiting work for some seconds. It waits until one does. "
            "Stop still works."
        )
        found.append(Notice("workers", words))
    if run.suspended_reason == "paused":
        found.append(Notice("paused", f"{_paused(run)} {_going_on(run, groups)}".strip()))
    elif run.suspended_reason == "budget":
        words = _("It waits until somebody raises the limit.")
        found.append(Notice("budget", f"{used_up(spending)} {words}"))
    elif run.degraded_at:
        words = _("From now on it only reads, and comes to an end.")
        found.append(Notice("degraded", f"{used_up(spending)} {words}"))
    return found


def wait_of(run: Run, groups: Groups) -> Wait | None:
    """What a run waits for that goes on by itself once that is there; None if it does not wait."""
    if run.suspended_reason == "approval":
        asking = [call for call in groups["waiting"] if call.state == "awaiting_approval"]
        said = ngettext(
            "It waits for somebody to approve %(n)d action.",
            "It waits for somebody to approve %(n)d actions.",
            len(asking),
        )
        return Wait(said % {"n": len(asking)}, asking)
    if run.suspended_reason == "dependency":
        doubts = groups["in_doubt"]
        if not doubts:
            return None  # all are known again: it goes on in a moment
        said = ngettext(
            "It waits until it is known what became of %(n)d action.",
            "It waits until it is known what became of %(n)d actions.",
            len(doubts),
        )
        return Wait(said % {"n": len(doubts)}, doubts)
    return None


def used_up(spending: Spending) -> str:
    """Which limits are reached: “Its limit of 5 actions is used up.”"""
    reached = [line.limit_words for line in spending.reached]
    if not reached:
        return _("Its budget is used up.")
    return _("Its limit of %(limits)s is reached.") % {"limits": ", ".join(reached)}


def _paused(run: Run) -> str:
    events = LedgerEvent.objects.filter(run=run, kind="run.suspended", data__reason="paused")
    event = events.order_by("-seq").first()
    if event is None:
        return _("Paused: nothing new starts.")
    name = names_of([event.actor])[event.actor]
    words = {"name": name, "time": clock(event.at), "why": event.data.get("why", "")}
    if words["why"]:
        return _("Paused by %(name)s at %(time)s (“%(why)s”): nothing new starts.") % words
    return _("Paused by %(name)s at %(time)s: nothing new starts.") % words


def _going_on(run: Run, groups: Groups) -> str:
    """What ends by itself, although the run is paused."""
    said = []
    if run.lease_holder:
        said.append(_("The agent still writes this answer to its end."))
    if flying := len(groups["in_flight"]):
        said.append(
            ngettext(
                "%(n)d action is still under way.", "%(n)d actions are still under way.", flying
            )
            % {"n": flying}
        )
    return " ".join(said)
