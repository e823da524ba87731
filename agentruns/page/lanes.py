"""The run's ledger as lanes of the timeline: the answer, then each call in the model's order."""

from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from agentruns import timeline
from agentruns.models import Output, Run, StopRequest, ToolCall
from agentruns.page.moments import crossing, stop_moment
from agentruns.page.words import call_pill, clock
from agentruns.states import CALL
from agentruns.timeline import NARROW, WIDE, Lane, Stretch, Timeline


def timelines(
    run: Run,
    outputs: list[Output],
    calls: list[ToolCall],
    stop: StopRequest | None,
    doubts: dict[str, datetime],
) -> list[Timeline]:
    """The picture twice: for a wide page, and for a narrow one. Empty if nothing ever began."""
    if not outputs and not calls:
        return []
    now = timezone.now()
    lanes = [_answer(outputs, now), *(_lane(call, stop, doubts, now) for call in calls)]
    start = min([run.started_at or run.created_at, *(o.started_at for o in outputs)])
    pressed = stop_moment(stop)
    ends = [stretch.end for lane in lanes for stretch in lane.stretches]
    ends += [moment for moment in (run.ended_at, pressed) if moment]
    words = _("Stop %(time)s") % {"time": clock(pressed)}
    return [
        timeline.draw(
            lanes,
            start=start,
            end=max(ends),
            clock=clock,
            stop=pressed,
            stop_words=words,
            layout=layout,
        )
        for layout in (WIDE, NARROW)
    ]


def _answer(outputs: list[Output], now: datetime) -> Lane:
    stretches = [Stretch(o.started_at, o.ended_at or now, "answer") for o in outputs]
    return Lane(_("Answer"), stretches)


def _lane(
    call: ToolCall, stop: StopRequest | None, doubts: dict[str, datetime], now: datetime
) -> Lane:
    state = CALL.states[call.state]
    ended = call.ended_at or doubts.get(call.pk) or now
    stretches = [
        Stretch(call.proposed_at, call.gate_passed_at or ended, is_solid=False),
    ]
    if call.gate_passed_at:
        stretches.append(Stretch(call.gate_passed_at, ended, state.tone))
    return Lane(call.in_words, stretches, _note(call, stop))


def _note(call: ToolCall, stop: StopRequest | None) -> str:
    across = crossing(call, stop)
    group = CALL.states[call.state].group
    if call.undo_state and call.undone_at:
        return _("undone %(time)s") % {"time": clock(call.undone_at)}
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
