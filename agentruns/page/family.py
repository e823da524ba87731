"""The runs that a run started, and the one that it was started by."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agentruns import rights
from agentruns.models import Run
from agentruns.page.words import Pill, run_pill, shorten
from agentruns.states import ACTIVE_RUN

TITLE_LENGTH = 90


@dataclass(frozen=True)
class Relative:
    """A run beside the one that the page is about."""

    run: Run
    title: str
    pill: Pill


def children_of(run: Run, user: Any) -> list[Relative]:
    """The runs that `run` started and `user` may see, oldest first."""
    found = rights.visible_runs(user).filter(parent=run).order_by("created_at", "pk")
    return [_relative(each) for each in found]


def parent_of(run: Run, user: Any) -> Relative | None:
    """The run that started `run`, if there is one and `user` may see it."""
    if run.parent_id is None:
        return None
    parent = rights.visible_run(user, run.parent_id)
    return _relative(parent) if parent else None


def acting_below(children: Iterable[Relative]) -> int:
    """How many runs act that these are, or that they started, or those started in turn."""
    level = {child.run.pk: child.run.status for child in children}
    acting = 0
    while level:
        acting += sum(status in ACTIVE_RUN for status in level.values())
        below = Run.objects.filter(parent__in=level).values_list("pk", "status")
        level = dict(below)
    return acting


def _relative(run: Run) -> Relative:
    return Relative(run, shorten(run.goal, TITLE_LENGTH), run_pill(run))
