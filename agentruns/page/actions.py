"""Each call of a run as people read it: its badge, what is known of it, what they can do."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agentruns.models import CallItem, LedgerEvent, Run, StopRequest, ToolCall
from agentruns.page.asking import Question, question_of
from agentruns.page.items import OF_ITEMS, Item, count_items, items_of
from agentruns.page.moments import asked_to_stop, crossing
from agentruns.page.people import names_of
from agentruns.page.readable import Field, fields_of
from agentruns.page.undoing import UndoStep, step_of, undone_mark
from agentruns.page.words import (
    DENIED,
    DROPPED,
    Pill,
    call_pill,
    clock,
    name_of,
    span,
    tier_words,
)
from agentruns.protocol.advance import HELD
from agentruns.protocol.consent import AGREED
from agentruns.protocol.gate import RATE_LIMITED
from agentruns.protocol.outcome import ATTEMPT_LIMIT, UNCLEAR
from agentruns.protocol.units import in_words
from agentruns.states import CALL, MAY_TURN_UP, NOT_LANDED, WAITING
from compensation.models import Compensation
from compensation.queries import foresee
from tools import registry
from tools.contract import FollowUp
from tools.errors import BadArguments

WAITED = timedelta(seconds=2)  # for an answer; before that it was lost, rather than late


@dataclass(frozen=True)
class Action:
    """One call. `notes` are facts, most important first; `undo_words` says what undo would do."""

    call: ToolCall
    pill: Pill
    tier: str
    notes: list[str]
    args: list[Field]
    receipt: list[Field] = field(default_factory=list)
    undo_words: str = ""
    can_undo: bool = False
    step: UndoStep | None = None
    question: Question | None = None
    can_look_up: bool = False
    is_looking_up: bool = False
    asks_until: datetime | None = None
    follow_up: FollowUp | None = None
    items: list[Item] = field(default_factory=list)
    items_words: str = ""

    @property
    def group(self) -> str:
        return CALL.states[self.call.state].group

    @property
    def is_open(self) -> bool:
        """Whether more of it may still happen."""
        return self.group in ("in_flight", WAITING)

    @property
    def is_asking(self) -> bool:
        return self.call.state == "awaiting_approval"


@dataclass(frozen=True)
class Context:
    """What the actions of one run are read against, by whom."""

    run: Run
    user: Any
    stops: Sequence[StopRequest]
    doubts: Mapping[str, datetime]
    cancellations: Mapping[str, Sequence[LedgerEvent]]
    words: Mapping[str, "Word"]
    steps: Mapping[str, Compensation]
    items: Mapping[str, Sequence[CallItem]]
    agreed: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Word:
    """What a person last said about a call: who, when, and the event that keeps it."""

    name: str
    event: LedgerEvent


def words_of(run: Run) -> dict[str, Word]:
    """The last answer to a doubt, or the rejection, of each call that has one, by its id."""
    events = LedgerEvent.objects.filter(run=run, kind__in=("call.answered", "call.rejected"))
    last = {str(event.call_id): event for event in events.order_by("seq")}
    names = names_of(event.actor for event in last.values())
    return {call_id: Word(names[event.actor], event) for call_id, event in last.items()}


def agreed_of(run: Run, calls: Sequence[ToolCall]) -> dict[str, list[str]]:
    """Who approved each call that several people had to approve, in their order, by its id."""
    found: dict[str, list[str]] = defaultdict(list)
    if any(call.consent_count > 1 for call in calls):
        events = LedgerEvent.objects.filter(run=run, kind__in=AGREED, data__has_key="digest")
        said = list(events.order_by("seq").values_list("call_id", "actor"))
        names = names_of(actor for _call_id, actor in said)
        for call_id, actor in said:
            found[str(call_id)].append(names[actor])
    return found


def action_of(call: ToolCall, context: Context) -> Action:
    """One call as people read it."""
    step = context.steps.get(call.pk)
    foreseen = foresee(call, step)
    registered = registry.get(call.tool)
    items = items_of(call, context.items.get(call.pk, ()))
    return Action(
        call=call,
        pill=call_pill(call, is_held=context.run.suspended_reason in HELD),
        tier=undone_mark(step, call) or _tier(call),
        notes=_notes(call, context),
        args=fields_of(call.args, registered.args.model_fields if registered else ()),
        receipt=_receipt(call),
        undo_words=_undo_words(foreseen.code, foreseen.text),
        can_undo=foreseen.can_undo,
        step=step_of(step, call) if step else None,
        question=question_of(call, context.run, context.user),
        can_look_up=bool(registered and registered.has_lookup),
        is_looking_up=call.state == "in_doubt" and call.next_lookup_at is not None,
        asks_until=call.consent_expires_at if call.state == "awaiting_approval" else None,
        follow_up=_follow_up(call) if foreseen.code == "impossible" else None,
        items=items,
        items_words=count_items(items),
    )


def _tier(call: ToolCall) -> str:
    """How far it can be undone, where there is or may be anything to undo."""
    if CALL.states[call.state].group in ("failed", "never_started"):
        return ""
    return tier_words(call.tier, call.tool)


def _notes(call: ToolCall, context: Context) -> list[str]:
    """Facts about the call for its row. Past tense only for what is proven."""
    group = CALL.states[call.state].group
    tell = {
        "waiting": _of_waiting,
        "in_flight": _of_flying,
        "done": _of_done,
        "in_doubt": _of_doubt,
        "failed": _of_failed,
        "never_started": _of_never_started,
    }[group]
    return [note for note in tell(call, context) if note]


def _of_waiting(call: ToolCall, context: Context) -> list[str]:
    asked = ""
    if call.state == "awaiting_approval" and call.consent_expires_at:
        asked = _("can be approved until %(time)s") % {"time": clock(call.consent_expires_at)}
    return [_unit(call), _approved(call, context), asked, _tried(call)]


def _of_flying(call: ToolCall, context: Context) -> list[str]:
    left = _("left at %(time)s") % {"time": clock(call.gate_passed_at)}
    until = ""
    if call.deadline_at:
        until = _("it has until %(time)s to answer") % {"time": clock(_deadline(call, context.run))}
    firm = _("cannot be broken off") if call.is_uninterruptible else ""
    return [_unit(call), firm, _approved(call, context), left, until, _cut(call, context)]


def _deadline(call: ToolCall, run: Run) -> datetime | None:
    """When a call that is under way has to have reported; Stop does not cut short what cannot be
    interrupted.
    """
    drain = None if call.is_uninterruptible else run.drain_deadline
    return min((moment for moment in (call.deadline_at, drain) if moment), default=None)


def _of_done(call: ToolCall, context: Context) -> list[str]:
    across = crossing(call, context.stops)
    corrected = ""
    if call.contradicted_at:
        corrected = _("first taken as not done; a receipt turned up later")
    said = [_said(call, context), corrected, _cut(call, context)]
    return [_unit(call), _approved(call, context), across, *said]


def _of_doubt(call: ToolCall, context: Context) -> list[str]:
    since = context.doubts.get(call.pk)
    waited = since - call.gate_passed_at if since and call.gate_passed_at else timedelta()
    words = {"time": clock(call.gate_passed_at), "span": span(waited)}
    sent = _("sent at %(time)s, and its answer was lost") % words
    if waited >= WAITED:
        sent = _("sent at %(time)s, no answer in %(span)s") % words
    if call.reason == UNCLEAR:
        sent = call.detail
    return [sent, _cut(call, context), *_looked_up(call), _said(call, context)]


def _looked_up(call: ToolCall) -> list[str]:
    """What the look-ups of a call in doubt came to so far, when the next is due, and until when it
    may still happen.
    """
    words = {"n": call.lookups, "time": clock(call.next_lookup_at), "end": clock(call.horizon_at)}
    said = []
    if call.last_lookup == ToolCall.LastLookup.NOT_FOUND:
        said.append(_("not found so far"))
        if call.horizon_at and call.horizon_at > timezone.now():
            said.append(_("it may still arrive until %(end)s") % words)
    elif call.lookups:
        looked = ngettext(
            "looked up %(n)s time, without an answer",
            "looked up %(n)s times, without an answer",
            call.lookups,
        )
        said.append(looked % words)
    if said and call.next_lookup_at:
        said.append(_("next look-up at %(time)s") % words)
    return said


def _not_done(call: ToolCall) -> list[str]:
    """Why a call counts as failed. It had an answer that says so; or it was in doubt, and then it
    is looked for a few times more.
    """
    words = {"end": clock(call.horizon_at), "time": clock(call.next_lookup_at)}
    if call.reason not in MAY_TURN_UP:
        return [call.detail or _("It had no effect.")]
    said = []
    if call.reason == NOT_LANDED:
        said.append(_("not found until %(end)s, so it counts as not done") % words)
    if call.next_lookup_at:
        said.append(_("we look once more at %(time)s, in case it arrives late") % words)
    return said


def _of_failed(call: ToolCall, context: Context) -> list[str]:
    return [
        *_not_done(call),
        crossing(call, context.stops),
        _cut(call, context),
        _said(call, context),
    ]


def _cut(call: ToolCall, context: Context) -> str:
    """Whether its server was asked to stop it, and what came of that."""
    return asked_to_stop(context.cancellations.get(call.pk, ()))


def _of_never_started(call: ToolCall, context: Context) -> list[str]:
    why = ""
    if call.state == "denied":
        why = str(DENIED.get(call.reason, ""))
    elif call.state == "voided":
        why = str(DROPPED.get(call.reason, ""))
    elif call.state == "rejected" and (word := context.words.get(call.pk)):
        why = _("%(who)s rejected it at %(time)s") % {
            "who": word.name,
            "time": clock(word.event.at),
        }
        why = f"{why}: “{call.detail}”" if call.detail else why
    return [_unit(call), why]


def _approved(call: ToolCall, context: Context) -> str:
    if call.consent_by is None or call.state == "awaiting_approval":
        return ""
    names = context.agreed.get(call.pk) or [name_of(call.consent_by)]
    return _("approved by %(name)s") % {"name": ", ".join(names)}


def _unit(call: ToolCall) -> str:
    """Which step of what is only finished or not begun: “transfer, step 2 of 2”."""
    return in_words(call) if call.unit else ""


def _tried(call: ToolCall) -> str:
    """“tried 2 of 4, again in 3 s”, for what had no effect and is tried again."""
    if call.next_attempt_at is None:
        return ""
    if call.reason == RATE_LIMITED:
        return _("as many went out in the last hour as may; its turn comes at %(time)s") % {
            "time": clock(call.next_attempt_at)
        }
    if call.is_held_back:
        time = {"time": clock(call.next_attempt_at)}
        return _("It is sent at %(time)s, unless it is taken back or the run is stopped.") % time
    wait = call.next_attempt_at - timezone.now()
    words = {"n": call.attempts, "all": ATTEMPT_LIMIT, "span": span(wait)}
    if wait <= timedelta():
        return _("tried %(n)d of %(all)d, and now again") % words
    return _("tried %(n)d of %(all)d, again in %(span)s") % words


def _said(call: ToolCall, context: Context) -> str:
    """The last word of a person about what became of the call."""
    word = context.words.get(call.pk)
    told = {
        "happened": _("%(who)s said at %(time)s that it happened"),
        "did_not_happen": _("%(who)s said at %(time)s that it did not happen"),
        "cannot_tell": _("%(who)s could not tell at %(time)s"),
    }.get(word.event.data.get("answer", "") if word else "")
    if word is None or told is None:
        return ""
    words = told % {"who": word.name, "time": clock(word.event.at)}
    evidence = word.event.data.get("evidence")
    return f"{words}: “{evidence}”" if evidence else words


def _receipt(call: ToolCall) -> list[Field]:
    if call.state != "landed":
        return []
    number = Field("request_id", call.request_id, _("Number"))
    rest = {key: value for key, value in (call.receipt or {}).items() if key not in OF_ITEMS}
    return [*fields_of(rest), number]


def _follow_up(call: ToolCall) -> FollowUp | None:
    """What a person may ask for next where nothing can be undone."""
    registered = registry.get(call.tool)
    try:
        return registered.follow_up(call.arguments(registered)) if registered else None
    except BadArguments:
        return None


def _undo_words(code: str, text: str) -> str:
    if code == "possible":
        return _("Undo: %(what)s") % {"what": text}
    if code == "impossible":
        return _("Cannot be undone. %(why)s") % {"why": text}
    if code == "not_needed":
        return _("Only read: nothing to undo.")
    return ""
