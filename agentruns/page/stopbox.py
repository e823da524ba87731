"""The place of Stop: what it will do right now, and afterwards who pressed it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agentruns import queries
from agentruns.models import Run, StopRequest, ToolCall
from agentruns.page.family import Relative, acting_below
from agentruns.page.undoing import Undoing
from agentruns.page.words import clock, name_of
from tools.contract import Tier


@dataclass(frozen=True)
class StopBox:
    """`can_press`: the button is live. Else `label` stands in its place, in the same spot."""

    can_press: bool
    label: str
    icon: str
    tone: str
    sentences: list[str]
    is_foresight: bool = False
    can_pause: bool = False


def stopbox_of(
    run: Run,
    calls: list[ToolCall],
    stop: StopRequest | None,
    children: Sequence[Relative],
    undoing: Undoing,
    *,
    may_stop: bool,
) -> StopBox:
    """What stands at the place of Stop at this moment."""
    if run.is_active and may_stop:
        said = [*queries.foresight(run).sentences(), *_below(children), *_settled_facts(calls)]
        said = said or [_("Nothing is under way, and nothing has been changed yet.")]
        can_pause = run.suspended_reason != "paused"
        return StopBox(True, _("Stop run"), "■", "stop", said, True, can_pause)
    if run.is_active:
        said = [_("Only %(name)s or an admin can stop it.") % {"name": name_of(run.owner)}]
        return StopBox(False, _("Not yours to stop"), "■", "plain", said)
    idle = _("Nothing in this run acts any more.")
    if undoing.calls:
        idle = _("What it did is being undone.")
    if run.is_stopping:
        said = [_by(stop), *_still_to_begin(run)]
        return StopBox(False, _("Stopping …"), "■", "stopping", [s for s in said if s])
    if run.is_stopped:
        said = [_by(stop), idle]
        return StopBox(False, _("Stopped"), "■", "stopped", [s for s in said if s])
    ended = _("It ended by itself at %(time)s.") % {"time": clock(run.ended_at)}
    said = [ended, idle]
    if run.status == "failed":
        return StopBox(False, _("Failed"), "✕", "failed", said)
    return StopBox(False, _("Finished"), "✓", "done", said)


def _below(children: Sequence[Relative]) -> list[str]:
    """How many runs stop with this one."""
    if not (n := acting_below(children)):
        return []
    return [
        ngettext("%(n)d run that it started stops too.", "%(n)d runs that it started stop too.", n)
        % {"n": n}
    ]


def _still_to_begin(run: Run) -> list[str]:
    """What has begun, and may only be finished; nothing else can start any more."""
    if after := queries.waits_after(run, queries.in_flight(run)):
        steps = _("Stop takes effect after: %(steps)s.") % {"steps": "; ".join(after)}
        return [steps, _("Nothing else can start.")]
    return [_("No new action can start.")]


def _by(stop: StopRequest | None) -> str:
    if stop is None:
        return ""
    words = {"name": name_of(stop.requested_by), "time": clock(stop.requested_at)}
    if stop.signal == "budget":
        return _("Its budget was used up at %(time)s.") % words
    return (
        _("Stopped by %(name)s at %(time)s.") % words
        if stop.settled_at
        else _("Stop requested by %(name)s at %(time)s.") % words
    )


def _settled_facts(calls: list[ToolCall]) -> list[str]:
    """What Stop would not change: what is done for good, and what is in doubt already."""
    said = []
    gone = sum(
        call.state == "landed"
        and call.tier != Tier.READ_ONLY
        and queries.undo_of(call) == "impossible"
        for call in calls
    )
    doubt = sum(call.state == "in_doubt" for call in calls)
    if gone:
        said.append(
            ngettext(
                "%(n)d action is done and cannot be undone.",
                "%(n)d actions are done and cannot be undone.",
                gone,
            )
            % {"n": gone}
        )
    if doubt:
        said.append(
            ngettext(
                "%(n)d action is in doubt and stays so until it is found out.",
                "%(n)d actions are in doubt and stay so until it is found out.",
                doubt,
            )
            % {"n": doubt}
        )
    return said
