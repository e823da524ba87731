"""The list of runs: filters with counts, pages, and for each run how its actions stand."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from agentruns import rights
from agentruns.models import Run, ToolCall
from agentruns.page.words import Pill, name_of, run_pill, shorten
from agentruns.states import (
    CALL,
    FINISHED_RUN,
    GROUPS,
    STOPPED_RUN,
    STOPPING_RUN,
)

PER_PAGE = 20
TITLE_LENGTH = 110

# Name, word and states of each filter: every run is under exactly one of them.
FILTERS: list[tuple[str, Any, tuple[str, ...]]] = [
    ("running", _("Running"), ("queued", "running")),
    ("waiting", _("Waiting"), ("suspended",)),
    ("stopping", _("Stopping"), STOPPING_RUN),
    ("stopped", _("Stopped"), STOPPED_RUN),
    ("finished", _("Finished"), FINISHED_RUN[:1]),
    ("failed", _("Failed"), FINISHED_RUN[1:]),
]
# What a row tells of its actions, in this order, and in these tones.
TOLD = [
    ("in_doubt", "doubt"),
    ("in_flight", "running"),
    ("done", "done"),
    ("failed", "failed"),
    ("never_started", "plain"),
]


@dataclass(frozen=True)
class Filter:
    name: str
    label: str
    count: int
    is_current: bool


@dataclass(frozen=True)
class Tally:
    """How many actions of a run are in one group."""

    label: str
    count: int
    tone: str


@dataclass(frozen=True)
class Line:
    """One run in the list."""

    run: Run
    title: str
    pill: Pill
    owner: str
    tallies: list[Tally]


@dataclass(frozen=True)
class Listing:
    filters: list[Filter]
    current: str
    lines: list[Line]
    pages: Page
    scope: str
    may_see_all: bool
    is_empty: bool


def listing(user: Any, *, scope: str, name: str, page: str) -> Listing:
    """The runs of `user`, or with scope `all` every run that `user` may see.

    An unknown filter, scope or page number is taken as the first one; without a scope, whoever
    may see all and has no run of their own sees all.
    """
    may_see_all = rights.sees_all(user)
    runs = rights.visible_runs(user)
    if not scope and not runs.filter(owner=user).exists():
        scope = "all"
    scope = "all" if scope == "all" and may_see_all else "mine"
    if scope == "mine":
        runs = runs.filter(owner=user)
    counts = Counter(dict(runs.order_by().values_list("status").annotate(n=Count("pk"))))
    states = next((states for known, _label, states in FILTERS if known == name), ())
    current = name if states else ""
    chosen = runs.filter(status__in=states) if states else runs
    pages = Paginator(chosen.select_related("agent", "owner"), PER_PAGE).get_page(page)
    return Listing(
        filters=_filters(counts, current),
        current=current,
        lines=_lines(list(pages.object_list), user),
        pages=pages,
        scope=scope,
        may_see_all=may_see_all,
        is_empty=not counts,
    )


def _filters(counts: Counter[str], current: str) -> list[Filter]:
    everything = Filter("", str(_("All")), counts.total(), not current)
    rest = [
        Filter(name, str(label), sum(counts[state] for state in states), name == current)
        for name, label, states in FILTERS
    ]
    return [everything, *rest]


def _lines(runs: list[Run], user: Any) -> list[Line]:
    grouped = _grouped(runs)
    return [
        Line(
            run=run,
            title=shorten(run.goal, TITLE_LENGTH),
            pill=run_pill(run, in_doubt=grouped[run.pk]["in_doubt"]),
            owner="" if run.owner_id == user.pk else name_of(run.owner),
            tallies=[
                Tally(str(GROUPS[group]), grouped[run.pk][group], tone)
                for group, tone in TOLD
                if grouped[run.pk][group]
            ],
        )
        for run in runs
    ]


def _grouped(runs: list[Run]) -> dict[str, Counter[str]]:
    """How many calls each run has in each group."""
    found: dict[str, Counter[str]] = {run.pk: Counter() for run in runs}
    rows = (
        ToolCall.objects.filter(run__in=runs)
        .order_by()
        .values_list("run", "state")
        .annotate(n=Count("pk"))
    )
    for run_id, state, n in rows:
        found[run_id][CALL.states[state].group] += n
    return found
