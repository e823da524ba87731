"""The run page: everything it shows, read once, and drawn in sections.

A section is a piece of the page with an id of its own. The whole page is its sections in order;
a page that is open already gets the sections that changed (consumers.py).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from agentruns import queries, rights
from agentruns.models import Output, Run, StopRequest, ToolCall
from agentruns.page import actions
from agentruns.page.answer import Answer, answer_of
from agentruns.page.family import Relative, children_of, parent_of
from agentruns.page.items import items_by_call
from agentruns.page.lanes import timelines
from agentruns.page.moments import cancellations_of, doubts_of, stop_in_force
from agentruns.page.onward import Onward, onward_of
from agentruns.page.spending import Spending, spending_of
from agentruns.page.standing import Notice, Wait, notices_of, wait_of
from agentruns.page.stopbox import StopBox, stopbox_of
from agentruns.page.stops import PastStop, past_stops, stops_of
from agentruns.page.undoing import Undoing, undoing_of
from agentruns.page.verdict import Verdict, verdict_of
from agentruns.page.words import Pill, name_of, run_pill, shorten
from agentruns.states import GROUPS, WAITING
from agentruns.timeline import Timeline
from compensation.models import Compensation
from compensation.queries import latest_steps
from tools.texts import spelt_out

TITLE_LENGTH = 140

# Which sections the page has, in their order. Those of the top never change their place.
TOP = ["head", "stopbox"]
LIVE = ["notice", "answer", "actions", "children", "earlier"]
STOPPED = ["verdict", "timeline", "inventory", "next", "children", "earlier", "answer"]
FINISHED = ["verdict", "answer", "inventory", "timeline", "children", "earlier"]


@dataclass(frozen=True)
class Viewer:
    """Who looks, and what they may do with this run."""

    user: Any
    may_stop: bool
    may_decide: bool
    may_undo: bool


@dataclass(frozen=True)
class Group:
    """A group of the inventory, with its actions."""

    name: str
    label: str
    actions: list[actions.Action]


@dataclass(frozen=True)
class RunPage:
    """The view model of one run for one viewer."""

    run: Run
    viewer: Viewer
    pill: Pill
    tokens: int
    stop: StopRequest | None
    stopbox: StopBox
    answer: Answer
    actions: list[actions.Action]
    groups: list[Group]
    verdict: Verdict | None
    timelines: list[Timeline]
    undoing: Undoing
    can_tick: bool
    notices: list[Notice]
    wait: Wait | None
    spending: Spending
    onward: Onward | None
    earlier: list[PastStop]
    children: list[Relative]
    parent: Relative | None

    @property
    def title(self) -> str:
        return shorten(self.run.goal, TITLE_LENGTH)

    @property
    def has_more_goal(self) -> bool:
        return self.title != self.run.goal

    @property
    def phase(self) -> str:
        """`live` while the run may act, `over` once it may not."""
        return "live" if self.run.is_active else "over"

    @property
    def has_ended(self) -> bool:
        """Whether nothing that it shows acts any more."""
        return all(run.has_ended for run in (self.run, *(child.run for child in self.children)))

    @property
    def is_others(self) -> bool:
        """Whether somebody looks at the run who does not own it."""
        return bool(self.run.owner != self.viewer.user)

    @property
    def owner_name(self) -> str:
        return name_of(self.run.owner)

    @property
    def order(self) -> list[str]:
        """The names of the sections below the top, in their order."""
        optional = {
            "notice": self.notices,
            "timeline": self.timelines,
            "next": self.onward and self.viewer.may_stop,
            "children": self.children,
            "earlier": self.earlier,
        }
        rest = FINISHED if self.run.status == "completed" else STOPPED
        wanted = LIVE if self.run.is_active else rest
        return [name for name in wanted if optional.get(name, True)]


def viewer_of(user: Any, run: Run) -> Viewer:
    return Viewer(
        user=user,
        may_stop=rights.may_stop(user, run),
        may_decide=rights.may_decide(user, run),
        may_undo=rights.may_undo(user, run),
    )


def build(run: Run, user: Any) -> RunPage:
    """Read everything that the page of `run` shows to `user`.

    The run comes with its agent and owner, see `find`.
    """
    viewer = viewer_of(user, run)
    calls = list(ToolCall.objects.filter(run=run).select_related("consent_by").order_by("number"))
    outputs = list(Output.objects.filter(run=run).order_by("turn"))
    stops = stops_of(run)
    stop, past = stop_in_force(run, stops), past_stops(run, stops)
    doubts = doubts_of(run)
    steps = latest_steps(run)
    found = _actions(run, calls, stops, doubts, steps, user)
    undoing = undoing_of(run, calls, steps, stop)
    groups = queries.grouped(calls)
    spending = spending_of(run)
    children = children_of(run, user)
    is_over = not run.is_active
    return RunPage(
        run=run,
        viewer=viewer,
        pill=run_pill(run, in_doubt=len(groups["in_doubt"])),
        tokens=sum(output.tokens_out for output in outputs),
        stop=stop,
        stopbox=stopbox_of(run, calls, stop, children, undoing, may_stop=viewer.may_stop),
        answer=answer_of(run, outputs, calls, stops, user),
        actions=list(found.values()),
        groups=_shown(groups, found) if is_over else [],
        verdict=verdict_of(run, groups, outputs, stop, user, undoing.calls) if is_over else None,
        timelines=timelines(run, outputs, calls, past, doubts) if is_over else [],
        undoing=undoing,
        can_tick=run.has_ended and viewer.may_undo and any(a.can_undo for a in found.values()),
        notices=notices_of(run, groups, spending),
        wait=wait_of(run, groups),
        spending=spending,
        onward=onward_of(run, groups, spending, is_undoing=undoing.can_stop),
        earlier=[each for each in past if each.stop != stop],
        children=children,
        parent=parent_of(run, user),
    )


def _actions(
    run: Run,
    calls: list[ToolCall],
    stops: list[StopRequest],
    doubts: dict[str, datetime],
    steps: dict[str, Compensation],
    user: Any,
) -> dict[str, actions.Action]:
    """Each call as people read it, by its id."""
    context = actions.Context(
        run=run,
        user=user,
        stops=stops,
        doubts=doubts,
        cancellations=cancellations_of(run),
        words=actions.words_of(run),
        steps=steps,
        items=items_by_call(run, calls),
        agreed=actions.agreed_of(run, calls),
    )
    return {call.pk: actions.action_of(call, context) for call in calls}


def find(run_id: str, user: Any) -> Run | None:
    """The run, if `user` may see it; with what the page needs of its neighbours."""
    return rights.visible_run(user, run_id, "agent", "owner", "parent")


def sections(page: RunPage, csrf_token: str) -> dict[str, str]:
    """Each section's HTML by its name: those of the top, then `page.order`."""
    drawn = outlines(page, csrf_token)
    return drawn | {"answer": page.answer.filled(drawn["answer"])}


def outlines(page: RunPage, csrf_token: str) -> dict[str, str]:
    """The same, the answer without its text (see Answer.filled)."""
    context = {"page": page, "run": page.run, "csrf_token": csrf_token}
    return {name: _drawn(name, context) for name in (*TOP, *page.order)}


def _drawn(name: str, context: dict[str, Any]) -> str:
    """One section, with whatever in it cannot be seen spelt out, whoever wrote it."""
    return spelt_out(render_to_string(f"agentruns/run/{name}.html", context).strip())


def _shown(groups: queries.Groups, found: dict[str, actions.Action]) -> list[Group]:
    """The groups that have any actions; what needs a person comes first."""
    order = ["in_doubt", "in_flight", "done", "failed", "never_started", WAITING]
    labels = {**GROUPS, WAITING: _("Waiting")}
    return [
        Group(name, str(labels[name]), [found[call.pk] for call in groups[name]])
        for name in order
        if groups[name]
    ]
