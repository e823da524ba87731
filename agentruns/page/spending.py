"""What a run has used of what it may use: only the limits that are set."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agentruns.models import Run, Terms
from agentruns.page.words import money, span
from agentruns.protocol.budget import Usage, usage

# What a new limit is asked for with.
RAISE = {
    "token_limit": gettext_lazy("New limit in tokens"),
    "cost_limit": gettext_lazy("New limit in US dollars"),
    "call_limit": gettext_lazy("New limit of actions"),
    "time_limit": gettext_lazy("New limit in seconds"),
}


@dataclass(frozen=True)
class Line:
    """One limit: “312 of 1,000 tokens”. `twice` is a higher one to begin with."""

    name: str
    label: str
    words: str
    limit_words: str
    is_reached: bool
    twice: str


@dataclass(frozen=True)
class Spending:
    """`lines` in the order of LIMITS; empty for a run without limits."""

    lines: list[Line] = field(default_factory=list)

    @property
    def reached(self) -> list[Line]:
        return [line for line in self.lines if line.is_reached]

    @property
    def counts_tokens(self) -> bool:
        return any(line.name == "token_limit" for line in self.lines)


def spending_of(run: Run) -> Spending:
    """How much of each of its limits the run has used. One that has none costs no query."""
    if not run.limits:
        return Spending()
    used = usage(run)
    return Spending([_line(name, limit, used) for name, limit in run.limits.items()])


def limit_words(limits: Mapping[str, Any]) -> str:
    """“5,000 tokens, $0.50, 20 actions, 10 min”."""
    return ", ".join(_amount(name, value) for name, value in limits.items())


def at_limit(terms: Terms) -> str:
    """What a run does at a limit."""
    return {
        Terms.OnLimit.STOP: _("Then it stops."),
        Terms.OnLimit.DEGRADE: _("Then it only reads, and comes to an end."),
        Terms.OnLimit.WAIT: _("Then it waits until the limit is raised."),
    }[Terms.OnLimit(terms.on_limit)]


def _line(name: str, limit: Any, used: Usage) -> Line:
    spent = used.of(name)
    return Line(
        name=name,
        label=str(RAISE[name]),
        words=_("%(used)s of %(limit)s")
        % {"used": _short(name, spent), "limit": _amount(name, limit)},
        limit_words=_amount(name, limit),
        is_reached=spent >= limit,
        twice=str(2 * max(limit, type(limit)(spent))),
    )


def _amount(name: str, value: Any) -> str:
    """With its unit: 1,000 tokens, $0.10, 5 actions, 2 min."""
    if name == "token_limit":
        return ngettext("%(n)s token", "%(n)s tokens", value) % {"n": f"{value:,}"}
    if name == "call_limit":
        return ngettext("%(n)s action", "%(n)s actions", value) % {"n": f"{value:,}"}
    return _short(name, value)


def _short(name: str, value: Any) -> str:
    """Without a unit that the limit beside it has."""
    if name == "cost_limit":
        return money(Decimal(value))
    if name == "time_limit":
        seconds = int(value)
        return span(timedelta(seconds=seconds)) if seconds else _("%(n)s s") % {"n": 0}
    return f"{value:,}"
