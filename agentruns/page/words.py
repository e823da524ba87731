"""The words and figures that every page shares: times, spans, numbers, people, badges."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agentruns.models import Run, ToolCall
from agentruns.page.items import in_part
from agentruns.protocol.gate import RATE_LIMITED
from agentruns.states import CALL, READY, RUN, State
from tools import registry, texts
from tools.contract import Tier
from tools.models import TIER_LABELS

NUMBER_WORDS = [
    "0",
    gettext_lazy("one"),
    gettext_lazy("two"),
    gettext_lazy("three"),
    gettext_lazy("four"),
    gettext_lazy("five"),
    gettext_lazy("six"),
    gettext_lazy("seven"),
    gettext_lazy("eight"),
    gettext_lazy("nine"),
    gettext_lazy("ten"),
]
SUSPENDED = {
    "approval": gettext_lazy("Waiting for approval"),
    "paused": gettext_lazy("Paused"),
    "dependency": gettext_lazy("Waiting: something is in doubt"),
    "budget": gettext_lazy("Waiting: its budget is used up"),
}
# Why a call never started, where its state alone does not say it.
NEVER_STARTED = {
    "approval_withdrawn": gettext_lazy("stopped before anyone approved it"),
    "withheld": gettext_lazy("taken back before it was sent"),
    "answer_cut": gettext_lazy("dropped: the answer broke off"),
    "worker_lost": gettext_lazy("dropped: the worker was lost"),
    "unit_broken": gettext_lazy("dropped: a step before it failed"),
    "unit_unfinished": gettext_lazy("held back: the step before it took too long"),
}
DENIED = {
    "run_not_running": gettext_lazy("The run was not running any more."),
    "old_epoch": gettext_lazy("It belonged to an earlier part of the run."),
    "claim_lost": gettext_lazy("Another worker had taken it over."),
    "owner_deactivated": gettext_lazy("The account of its owner was deactivated."),
    "unknown_tool": gettext_lazy("There is no tool by that name."),
    "grant_does_not_cover": gettext_lazy("This run was not given the right to use this tool."),
    "tool_changed": gettext_lazy(
        "Its source had changed this tool, so an admin has to look at it again."
    ),
    "ledger_cut_back": gettext_lazy(
        "Records of this run are missing, so nothing more is done: an admin has to look at it."
    ),
    "args_changed": gettext_lazy(
        "The arguments are not those that the agent wrote: they were changed in the database."
    ),
    "tool_disabled": gettext_lazy("An admin has switched this tool off."),
    "needs_consent": gettext_lazy("It would have needed a person’s approval."),
    "budget_exhausted": gettext_lazy("The run’s budget was used up."),
    "duplicate": gettext_lazy("The same was done before, and nobody asked for it again."),
    "unit_incomplete": gettext_lazy("The other steps that belong to it were not all there."),
}
# Why the call that a stop had held back was dropped when the run was continued.
DROPPED = {
    "needs_consent": gettext_lazy("It needs an approval anew: the agent may ask for it again."),
    "dropped": gettext_lazy("It was held back by the stop, and dropped to continue."),
}
FAILURES = {
    "ledger_cut_back": gettext_lazy(
        "Records of this run are missing, so nothing more is done: an admin has to look at it."
    ),
    "provider_failed": gettext_lazy("The model’s provider failed."),
    "provider_silent": gettext_lazy("The model’s provider fell silent."),
    "model_unknown": gettext_lazy("This agent’s model cannot be used here."),
    "turn_limit": gettext_lazy("It took too many steps."),
    "worker_lost": gettext_lazy("Its worker was lost again and again."),
    "answer_length": gettext_lazy("The answer got too long."),
    "answer_malformed": gettext_lazy("The model’s answer could not be read."),
    "answer_content_filter": gettext_lazy("The model’s provider withheld the answer."),
}


@dataclass(frozen=True)
class Pill:
    """A badge: a word, its tone and its icon, always together."""

    label: str
    tone: str
    icon: str


def sentence(text: str) -> str:
    """`text` with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def number(n: int) -> str:
    """A count as a word up to ten, as figures from there on."""
    return str(NUMBER_WORDS[n]) if 0 <= n < len(NUMBER_WORDS) else str(n)


def clock(moment: datetime | None) -> str:
    """The time of day, to the second."""
    return f"{timezone.localtime(moment):%H:%M:%S}" if moment else ""


def clock_exact(moment: datetime) -> str:
    """The time of day, to the millisecond."""
    local = timezone.localtime(moment)
    return f"{local:%H:%M:%S}.{local.microsecond // 1000:03d}"


def when(moment: datetime, *, now: datetime | None = None) -> str:
    """The time of day, with the date unless it is today."""
    local = timezone.localtime(moment)
    if local.date() == timezone.localtime(now).date():
        return f"{local:%H:%M}"
    return date_format(local, "j M Y, H:i")


def when_exactly(moment: datetime) -> str:
    """The time of day to the second; to the minute, with the date, unless it is today."""
    is_today = timezone.localtime(moment).date() == timezone.localtime().date()
    return clock(moment) if is_today else when(moment)


def period(start: datetime, end: datetime) -> str:
    """From when to when, to the second; with the date of the start unless that is today."""
    local = timezone.localtime(start)
    is_today = local.date() == timezone.localtime().date()
    day = "" if is_today else date_format(local, "j M Y") + ", "
    return f"{day}{clock(start)} – {clock(end)}"


def span(length: timedelta) -> str:
    """A length of time in the unit that suits it: 38 ms, 0.9 s, 12 s, 3 min 5 s, 2 h 5 min."""
    seconds = max(0.0, length.total_seconds())
    if round(seconds * 1000) < 100:
        return _("%(n)s ms") % {"n": round(seconds * 1000)}
    if seconds < 9.95:
        return _("%(n)s s") % {"n": f"{seconds:.1f}"}
    whole = round(seconds)
    if whole < 60:
        return _("%(n)s s") % {"n": whole}
    if whole < 3600:
        words = _("%(min)s min %(s)s s") if whole % 60 else _("%(min)s min")
        return words % {"min": whole // 60, "s": whole % 60}
    words = _("%(h)s h %(min)s min") if whole % 3600 >= 60 else _("%(h)s h")
    return words % {"h": whole // 3600, "min": whole % 3600 // 60}


def money(amount: Decimal) -> str:
    """US dollars; tiny amounts with as many digits as they need."""
    return f"${amount:.2f}" if not amount or amount >= Decimal("0.01") else f"${amount:.4f}"


def name_of(user: Any) -> str:
    """How a person is called on the pages; “the system” where it was nobody."""
    if user is None:
        return _("the system")
    return str(user.get_full_name() or user.get_username())


def tier_words(tier: str, tool: str = "") -> str:
    """How far it can be taken back: of a tool that an admin has only made to ask first, as far as
    its code can.
    """
    registered = registry.get(tool) if tool else None
    can = registered.tier if registered and registered.has_compensate else Tier(tier)
    return str(TIER_LABELS[can])


def shorten(text: str, limit: int) -> str:
    """`text` on one line, with “…” where it was longer than `limit`, and nothing hidden in it."""
    return texts.line(text, limit)


def run_pill(run: Run, *, in_doubt: int = 0) -> Pill:
    """The run's badge; it says what a waiting run waits for, and how much is in doubt."""
    state = RUN.states[run.status]
    label = str(state.label)
    if run.status == "suspended":
        label = str(SUSPENDED.get(run.suspended_reason, state.label))
    elif run.status == "stopped_dirty" and in_doubt:
        label = ngettext(
            "Stopped, %(number)s thing in doubt", "Stopped, %(number)s things in doubt", in_doubt
        ) % {"number": number(in_doubt)}
    return _pill(state, label)


def undone_words(call: ToolCall) -> str:
    """“undone 14:03:12”; "" for what stands."""
    return _("undone %(time)s") % {"time": clock(call.undone_at)} if call.undo_state else ""


def call_pill(call: ToolCall, *, is_held: bool = False) -> Pill:
    """The call's badge, in a word of its own for each way that it can end. `is_held`: its run
    does nothing for now.
    """
    state = CALL.states[call.state]
    label = str(NEVER_STARTED.get(call.reason, state.label))
    if state.group != "never_started":
        label = str(state.label)
    if call.state == "in_flight" and call.tier == Tier.IRREVERSIBLE:
        label = _("leaving now")
    if call.state in READY and is_held:
        label = _("on hold")
    elif call.state in READY and call.reason == RATE_LIMITED:
        label = _("waits its turn")
    elif call.is_held_back:
        label = _("not sent yet")
    elif call.state in READY and call.next_attempt_at:
        label = _("tries again")
    if part := in_part(call):
        return Pill(f"{part} · {clock(call.ended_at)}", state.tone, "◐")
    if call.state == "landed":
        # Of what a person said that it happened, nobody knows when.
        is_said = "answered_by" in (call.receipt or {})
        label = str(state.label) if is_said else _("done %(time)s") % {"time": clock(call.ended_at)}
    return _pill(state, sentence(label))


def _pill(state: State, label: str) -> Pill:
    return Pill(label, state.tone, state.icon)


def failure_words(run: Run) -> str:
    """Why the run failed, as far as is known."""
    return str(FAILURES.get(run.failure) or _("The answer did not end as it should."))
