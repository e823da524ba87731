"""What a person may do with a run that was stopped: let it go on from there."""

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agentruns.models import Run
from agentruns.page.spending import Spending
from agentruns.page.standing import used_up
from agentruns.queries import Groups


@dataclass(frozen=True)
class Onward:
    """`held`: actions that the stop held back, which continuing lets go or drops; `why_not`:
    what has to come first, "" if nothing has.
    """

    held: int
    held_words: str
    why_not: str
    needs_budget: bool

    @property
    def can_press(self) -> bool:
        return not self.why_not


def onward_of(run: Run, groups: Groups, spending: Spending, *, is_undoing: bool) -> Onward | None:
    """What stands between the run and its going on; None if it was not stopped."""
    if not run.is_stopped:
        return None
    held = sum(call.state == "frozen" for call in groups["never_started"])
    words = ngettext(
        "%(n)d action was held back. What becomes of it?",
        "%(n)d actions were held back. What becomes of them?",
        held,
    ) % {"n": held}
    why_not = _why_not(run, groups, spending, is_undoing=is_undoing)
    return Onward(held, words if held else "", why_not, bool(spending.reached))


def _why_not(run: Run, groups: Groups, spending: Spending, *, is_undoing: bool) -> str:
    if run.status == "stopped_dirty":
        doubt = len(groups["in_doubt"])
        return ngettext(
            "Not yet: first it has to be known what became of %(n)d action. Answer it above.",
            "Not yet: first it has to be known what became of %(n)d actions. Answer them above.",
            doubt,
        ) % {"n": doubt}
    if is_undoing:
        return _("Not yet: what it did is being undone.")
    if run.parent is not None and not run.parent.is_active:
        return _("Not by itself: the run that started it has ended or was stopped.")
    if spending.reached:
        return f"{used_up(spending)} {_('Raise it first.')}"
    return ""
