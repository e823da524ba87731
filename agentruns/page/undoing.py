"""Undo as people read it: how far it is, what became of each step, and what they can do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agentruns.models import Run, StopRequest, ToolCall
from agentruns.page.words import Pill, clock, name_of, number, sentence, span, undone_words
from agentruns.protocol.undo import undone_by_itself
from compensation.models import Compensation
from compensation.states import UNSETTLED

# Where the state's own word would say too much, or too little.
LABELS: dict[tuple[str, str], tuple[Any, str, str]] = {
    ("dropped", "unknown_when_stopped"): (
        gettext_lazy("undo was stopped: nobody knows whether it is undone"),
        "doubt",
        "?",
    ),
}


@dataclass(frozen=True)
class UndoStep:
    """Where the undo of one call stands. `notes` are facts, most important first."""

    pk: str
    pill: Pill
    notes: list[str]
    is_living: bool
    needs_person: bool


@dataclass(frozen=True)
class Undoing:
    """How far the undo of a run is: "" if nobody asked for one. `stop_words`: what Stop of it
    would do right now, "" where there is nothing to stop; `calls`: the ids of those that are being
    undone, or are about to be.
    """

    words: str = ""
    stop_words: str = ""
    calls: frozenset[str] = frozenset()

    @property
    def can_stop(self) -> bool:
        return bool(self.stop_words)


def step_of(step: Compensation, call: ToolCall) -> UndoStep:
    """The latest step of the call."""
    state = step.shown
    label, tone, icon = LABELS.get((step.state, step.reason), (state.label, state.tone, state.icon))
    if step.state == "undone" and step.is_by_hand:
        label = _("undone by hand")
    return UndoStep(
        step.pk,
        Pill(sentence(str(label)), tone, icon),
        [note for note in _notes(step, call) if note],
        step.is_living,
        step.needs_person,
    )


def undone_mark(step: Compensation | None, call: ToolCall) -> str:
    """“undone 14:03:12 by Ana”; "" for what stands."""
    if step is None or not call.undo_state:
        return undone_words(call)
    words = {"time": clock(call.undone_at)}
    if step.is_by_hand:
        words["name"] = name_of(step.settled_by)
        return _("undone %(time)s by hand, by %(name)s") % words
    if step.request.stop_epoch is not None:
        return _("undone %(time)s by itself, after the Stop") % words
    words["name"] = name_of(step.request.requested_by)
    return _("undone %(time)s, asked for by %(name)s") % words


def undoing_of(
    run: Run, calls: Sequence[ToolCall], steps: Mapping[str, Compensation], stop: StopRequest | None
) -> Undoing:
    """How far the undo of the run is, in a sentence or two."""
    found = list(steps.values())
    living = [step for step in found if step.is_living]
    due = undone_by_itself(run, calls) if stop is not None and stop.undo_is_due else []
    own = frozenset([*(step.call_id for step in living), *(call.pk for call in due)])
    if living:
        return Undoing(_under_way(found, living), _if_stopped(living), own)
    if due:
        return Undoing(_about_to_begin(due), _("Then nothing is undone by itself."), own)
    return Undoing(" ".join(sentence(each) for each in _ended(found) if each))


# --- One step ------------------------------------------------------------------------------------
def _notes(step: Compensation, call: ToolCall) -> list[str]:
    mark = sentence(undone_mark(step, call))
    why = "" if step.state in ("changed", "cannot") else step.why
    if step.state == "undone":
        reason = f"“{step.settled_reason}”" if step.is_by_hand else ""
        return [step.note, f"{mark}: {reason}" if reason else f"{mark}."]
    if step.state == "left":
        words = {"name": name_of(step.settled_by), "time": clock(step.settled_at)}
        words["why"] = step.settled_reason
        return [
            _("%(name)s left it as it is, at %(time)s: “%(why)s”") % words,
            step.detail or step.why,
        ]
    if step.state == "dropped":
        return [why, step.detail]
    return [why, step.detail, _next_attempt(step)]


def _next_attempt(step: Compensation) -> str:
    if step.state != "retrying" or step.next_attempt_at is None:
        return ""
    wait = step.next_attempt_at - timezone.now()
    return _("Next attempt in %(span)s.") % {"span": span(wait)} if wait > timedelta() else ""


# --- The whole -----------------------------------------------------------------------------------
def _under_way(steps: Sequence[Compensation], living: Sequence[Compensation]) -> str:
    over = len(steps) - len(living)
    said = [_("Undoing: %(done)d of %(all)d done …") % {"done": over, "all": len(steps)}]
    if any(step.state in UNSETTLED for step in steps):
        said.append(_("What could not be undone does not hold up the rest."))
    return " ".join(said)


def _if_stopped(living: Sequence[Compensation]) -> str:
    begun = sum(step.state == "running" for step in living)
    waiting = len(living) - begun
    said = []
    if begun:
        said.append(_("The one that is being undone right now is finished."))
    if waiting:
        said.append(
            ngettext(
                "%(n)d action that still waits is left as it is.",
                "%(n)d actions that still wait are left as they are.",
                waiting,
            )
            % {"n": waiting}
        )
    return " ".join(said)


def _about_to_begin(calls: Sequence[ToolCall]) -> str:
    if any(call.state == "in_doubt" for call in calls):
        return _("What can be undone by itself waits until it is known what is in doubt.")
    return _("What can be undone by itself is about to be undone.")


def _ended(steps: Sequence[Compensation]) -> list[str]:
    """A sentence for each way in which steps ended, so that they add up."""
    by_hand = [s for s in steps if s.state == "undone" and s.is_by_hand]
    undone = [s for s in steps if s.state == "undone" and not s.is_by_hand]
    by_itself = sum(step.request.stop_epoch is not None for step in undone)
    counted: list[tuple[int, str]] = [
        (
            by_itself,
            ngettext(
                "%(number)s action was undone by itself, after the Stop.",
                "%(number)s actions were undone by themselves, after the Stop.",
                by_itself,
            ),
        ),
        (
            n := len(undone) - by_itself,
            ngettext("%(number)s action is undone.", "%(number)s actions are undone.", n),
        ),
        (
            n := len(by_hand),
            ngettext("%(number)s was undone by hand.", "%(number)s were undone by hand.", n),
        ),
        (
            n := sum(step.state == "left" for step in steps),
            ngettext("%(number)s was left as it is.", "%(number)s were left as they are.", n),
        ),
        (
            n := sum(step.state in UNSETTLED for step in steps),
            ngettext(
                "%(number)s could not be undone: see below.",
                "%(number)s could not be undone: see below.",
                n,
            ),
        ),
    ]
    said = [words % {"number": number(n)} for n, words in counted if n]
    return [*said, _dropped([step for step in steps if step.state == "dropped"])]


def _dropped(steps: Sequence[Compensation]) -> str:
    if not steps:
        return ""
    last = max(steps, key=lambda step: step.created_at).request
    words = {
        "number": number(len(steps)),
        "name": name_of(last.stopped_by),
        "time": clock(last.stopped_at),
    }
    return (
        ngettext(
            "%(number)s was not undone, because %(name)s stopped the undo at %(time)s.",
            "%(number)s were not undone, because %(name)s stopped the undo at %(time)s.",
            len(steps),
        )
        % words
    )
