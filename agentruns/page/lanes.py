"""The run's ledger as lanes of the timeline: the answer, then each call in the model's order."""

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from agentruns import timeline
from agentruns.models import Output, Run, StopRequest, ToolCall
from agentruns.page.moments import crossing
from agentruns.page.stops import PastStop
from agentruns.page.words import call_pill, clock, undone_words
from agentruns.states import CALL
from agentruns.timeline import NARROW, WIDE, Lane, Mark, Stretch, Timeline


def timelines(
    run: Run,
    outputs: list[Output],
    calls: list[ToolCall],
    stops: Sequence[PastStop],
    doubts: dict[str, datetime],
) -> list[Timeline]:
    """The picture twice: for a wide page, and for a narrow one. Empty if nothing ever began."""
    if not outputs and not calls:
        return []
    now = timezone.now()
    requests = [past.stop for past in stops]
    lanes = [_answer(outputs, now), *(_lane(call, requests, doubts, now) for call in calls)]
    start = min([run.started_at or run.created_at, *(o.started_at for o in outputs)])
    marks = [mark for past in stops for mark in _marks(past)]
    ends = [stretch.end for lane in lanes for stretch in lane.stretches]
    ends += [mark.at for mark in marks]
    ends += [run.ended_at] if run.ended_at else []
    idle = [(p.stop.settled_at, p.again_at) for p in stops if p.stop.settled_at and p.again_at]
    return [
        timeline.draw(
            lanes,
            start=start,
            end=max(ends),
            clock=clock,
            marks=marks,
            idle=idle,
            layout=layout,
        )
        for layout in (WIDE, NARROW)
    ]


def _marks(past: PastStop) -> list[Mark]:
    pressed = past.stop.requested_at
    marks = [Mark(pressed, _("Stop %(time)s") % {"time": clock(pressed)})]
    if past.again_at:
        words = _("continued %(time)s") % {"time": clock(past.again_at)}
        marks.append(Mark(past.again_at, words, "again"))
    return marks


def _answer(outputs: list[Output], now: datetime) -> Lane:
    stretches = [Stretch(o.started_at, o.ended_at or now, "answer") for o in outputs]
    return Lane(_("Answer"), stretches)


def _lane(
    call: ToolCall, stops: Sequence[StopRequest], doubts: dict[str, datetime], now: datetime
) -> Lane:
    state = CALL.states[call.state]
    ended = call.ended_at or doubts.get(call.pk) or now
    stretches = [
        Stretch(call.proposed_at, call.gate_passed_at or ended, is_solid=False),
    ]
    if call.gate_passed_at:
        stretches.append(Stretch(call.gate_passed_at, ended, state.tone))
    return Lane(call.in_words, stretches, _note(call, stops))


def _note(call: ToolCall, stops: Sequence[StopRequest]) -> str:
    across = crossing(call, stops)
    group = CALL.states[call.state].group
    if call.undo_state:
        return undone_words(call)
    if group == "done":
        return across
    if group == "in_doubt":
        return f"{across}, {_('no answer')}" if across else _("no answer")
    if group == "failed":
        return across or _("failed, no effect")
    if group == "in_flight":
        return f"{across}, {_('still under way')}" if across else _("still under way")
    label = call_pill(call).label
    return label[:1].lower() + label[1:]
