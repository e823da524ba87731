"""The verdict: one sentence that counts, three phases with their times, five numbers that add up.

Past tense only for proven facts: nothing here says “stopped” while the model's stream or a call
may still be under way.
"""

import statistics
from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agentruns.models import LedgerEvent, Output, Run, StopRequest, ToolCall
from agentruns.page.items import in_part
from agentruns.page.moments import crossing, stop_moment
from agentruns.page.stops import closing, has_words
from agentruns.page.words import (
    clock,
    clock_exact,
    failure_words,
    money,
    name_of,
    number,
    sentence,
    span,
)
from agentruns.queries import Groups, undo_of, waits_after
from agentruns.states import GROUPS, MAY_TURN_UP, WAITING
from tools.contract import Tier

TONES = {
    "done": "done",
    "in_doubt": "doubt",
    "failed": "failed",
    "in_flight": "running",
}
COMPARED_RUNS = 50


@dataclass(frozen=True)
class Number:
    """How many calls are in one group."""

    group: str
    label: str
    count: int
    tone: str


@dataclass(frozen=True)
class Phase:
    """One step of stopping: when, and what. `is_proven` false: it is still going on."""

    at: str
    text: str
    is_proven: bool = True


@dataclass(frozen=True)
class Verdict:
    headline: str
    late: str
    closing: str
    phases: list[Phase]
    numbers: list[Number]
    total: str
    not_done: list[str]


def verdict_of(
    run: Run,
    groups: Groups,
    outputs: list[Output],
    stop: StopRequest | None,
    viewer: object,
    in_undo: Container[str] = (),
) -> Verdict:
    """The verdict on a run that is over, or stopping. `in_undo`: the calls being undone."""
    stopped_by = stop if stop_moment(stop) else None
    return Verdict(
        headline=headline(run, groups, has_text=any(o.text for o in outputs)),
        late=too_late(run, stop, viewer),
        closing=closing(stopped_by) if stopped_by else "",
        phases=phases_of(run, groups, outputs, stopped_by) if stopped_by else [],
        numbers=numbers_of(groups),
        total=_total(groups),
        not_done=not_done_by_stop(groups, stopped_by, in_undo) if stopped_by else [],
    )


# --- The sentence ------------------------------------------------------------------------------
def headline(run: Run, groups: Groups, *, has_text: bool = True) -> str:
    """What happened, in numbers; while the run stops, what is still open."""
    if run.is_stopping:
        return _stopping(run, groups)
    counted = " ".join(count_sentences(groups))
    if run.status == "completed":
        return _("It finished. %(counted)s") % {
            "counted": counted or _("It did nothing but write.")
        }
    if run.status == "failed":
        return f"{_('It failed.')} {failure_words(run)} {counted or _('Nothing happened.')}"
    if not counted:
        return (
            _("Stopped before any action.") if has_text else _("Stopped before anything happened.")
        )
    return counted


def count_sentences(groups: Groups) -> list[str]:
    """“Two things happened.” “One is in doubt.” …: a sentence for each group that has any."""
    doubt, flying = len(groups["in_doubt"]), len(groups["in_flight"])
    never = len(groups["never_started"])
    unfound = sum(call.reason in MAY_TURN_UP for call in groups["failed"])
    failed = len(groups["failed"]) - unfound
    said = _done(groups["done"], is_all_known=not (doubt or flying or unfound))
    if not groups["done"] and (never or failed) and not (doubt or flying or unfound):
        said = [_("nothing happened.")]
    if flying:
        said.append(
            ngettext("%(number)s is in flight.", "%(number)s are in flight.", flying)
            % {"number": number(flying)}
        )
    if doubt:
        said.append(
            ngettext("%(number)s is in doubt.", "%(number)s are in doubt.", doubt)
            % {"number": number(doubt)}
        )
    said += _failures(failed, unfound)
    if never:
        said.append(
            ngettext("%(number)s never started.", "%(number)s never started.", never)
            % {"number": number(never)}
        )
    return [sentence(each) for each in said if each]


def _done(done: list[ToolCall], *, is_all_known: bool) -> list[str]:
    """Of what landed: how much, whether any of it changed anything, in part, and was undone."""
    effects = [call for call in done if call.tier != Tier.READ_ONLY]
    words = {"number": number(len(done))}
    if done and not effects:
        said = [_("nothing was changed.")] if is_all_known else []
        looked = ngettext(
            "%(number)s thing was looked up.", "%(number)s things were looked up.", len(done)
        )
        return [*said, looked % words]
    said = []
    if done:
        said = [
            ngettext("%(number)s thing happened.", "%(number)s things happened.", len(done)) % words
        ]
    if len(effects) == 1 and (part := in_part(effects[0])):
        said.append(_("in part: %(part)s.") % {"part": part})
    if undone := sum(1 for call in done if call.undo_state):
        said.append(_undone(undone, len(done)))
    return said


def _failures(failed: int, unfound: int) -> list[str]:
    """Of what is known to have had no effect, and of what only was not found after a doubt."""
    words = {
        ngettext(
            "%(number)s failed, without effect.", "%(number)s failed, without effect.", failed
        ): failed,
        ngettext("%(number)s counts as not done.", "%(number)s count as not done.", unfound): (
            unfound
        ),
    }
    return [said % {"number": number(n)} for said, n in words.items() if n]


def _undone(undone: int, done: int) -> str:
    if undone == done:
        return ngettext("it has been undone.", "all have been undone.", undone)
    return ngettext(
        "%(number)s of them has been undone.", "%(number)s of them have been undone.", undone
    ) % {"number": number(undone)}


def _stopping(run: Run, groups: Groups) -> str:
    flying = len(groups["in_flight"])
    parts = []
    if run.lease_holder:
        parts.append(_("the model is being cut off"))
    if flying:
        parts.append(
            ngettext("%(n)d action in flight", "%(n)d actions in flight", flying) % {"n": flying}
        )
    return _("Stopping: %(what)s …") % {"what": ", ".join(parts)} if parts else _("Stopping …")


def too_late(run: Run, stop: StopRequest | None, viewer: object) -> str:
    """What is said if the run's own end came before the stop."""
    if stop is None or stop.won_by != StopRequest.WonBy.COMPLETION:
        return ""
    words = {
        "span": span(stop.requested_at - stop.no_new_effect_at),
        "name": name_of(stop.requested_by),
    }
    if stop.requested_by != viewer:
        said = _("It had ended %(span)s before %(name)s pressed Stop") % words
    elif run.status == "failed":
        said = _("It had failed %(span)s before your stop") % words
    else:
        said = _("It had finished %(span)s before your stop") % words
    at_once = StopRequest.objects.filter(run__parent=run, requested_at=stop.requested_at)
    if below := at_once.filter(won_by=StopRequest.WonBy.STOP).count():
        return ngettext(
            "%(said)s, which ended %(n)d run that it had started.",
            "%(said)s, which ended %(n)d runs that it had started.",
            below,
        ) % {"said": said, "n": below}
    return _("%(said)s, which changed nothing.") % {"said": said}


# --- Phases ------------------------------------------------------------------------------------
def phases_of(run: Run, groups: Groups, outputs: list[Output], stop: StopRequest) -> list[Phase]:
    """Requested, shut, cut off, settled: each with its time, or as still going on."""
    shut = _after(stop, stop.no_new_effect_at)
    return [
        Phase(clock_exact(stop.requested_at), _requested(stop)),
        Phase(shut, _shut(stop)),
        _generation(run, outputs, stop),
        _settled(run, groups, stop),
    ]


def _shut(stop: StopRequest) -> str:
    if stop.answer.get("waits_for", {}).get("after"):
        return _("no new action possible, except to finish what had begun")
    return _("no new action possible")


def _requested(stop: StopRequest) -> str:
    name = name_of(stop.requested_by)
    said = {
        "admin": _("Stop requested by %(name)s, as admin"),
        "api": _("Stop requested by %(name)s, through the API"),
        "budget": _("Stop requested: the budget was used up"),
        "dependency": _because_of_parent(stop.run.parent),
    }.get(stop.signal, _("Stop requested by %(name)s")) % {"name": name}
    return f"{said}: “{stop.reason}”" if has_words(stop) else said


def _because_of_parent(parent: Run | None) -> str:
    if parent is not None and parent.status == "failed":
        return _("Stop requested, because the run that started this one had failed")
    return _("Stop requested, because the run that started this one was stopped")


def _generation(run: Run, outputs: list[Output], stop: StopRequest) -> Phase:
    written = sum(output.tokens_out for output in outputs)
    if stop.generation_stopped_at and outputs and outputs[-1].status == "complete":
        ended = _("the model had just ended its answer")
        return Phase(_after(stop, stop.generation_stopped_at), ended)
    if stop.generation_stopped_at:
        return Phase(
            _after(stop, stop.generation_stopped_at),
            _("the model was cut off: %(tokens)s") % {"tokens": _tokens(run, written)},
        )
    if run.lease_holder:
        return Phase("…", _("the model is being cut off"), is_proven=False)
    taken = LedgerEvent.objects.filter(
        run=run, kind="lease.taken_away", at__gt=stop.requested_at
    ).first()
    if taken and taken.at:
        return Phase(
            _after(stop, taken.at),
            _("the model’s worker did not answer; its right to go on was taken away"),
        )
    return Phase("–", _("no model was writing"))


def _tokens(run: Run, written: int) -> str:
    """“312 of about 3,000 tokens, about $0.03 saved”; the estimate only where there is one."""
    usual = usual_tokens(run)
    if usual is None or usual <= written:
        return ngettext("%(n)s token written", "%(n)s tokens written", written) % {
            "n": f"{written:,}"
        }
    words = _("%(n)s of about %(usual)s tokens written") % {
        "n": f"{written:,}",
        "usual": f"{usual:,}",
    }
    price = run.agent.price_per_million_tokens
    if not price:
        return words
    return _("%(words)s, about %(money)s saved") % {
        "words": words,
        "money": money(price * (usual - written) / 1_000_000),
    }


def usual_tokens(run: Run) -> int | None:
    """The median of what this agent's completed runs wrote; None if none ever completed."""
    sums = (
        Output.objects.filter(run__agent=run.agent_id, run__status="completed")
        .values("run")
        .annotate(tokens=Sum("tokens_out"))
        .order_by("-run__ended_at")
        .values_list("tokens", flat=True)[:COMPARED_RUNS]
    )
    counts = [count for count in sums if count]
    return round(statistics.median(counts)) if counts else None


def _settled(run: Run, groups: Groups, stop: StopRequest) -> Phase:
    if stop.settled_at:
        words = _("settled")
        if run.status == "stopped_dirty":
            words = _("settled, but not everything is known")
        return Phase(_after(stop, stop.settled_at), words)
    flying = len(groups["in_flight"])
    if after := waits_after(run, groups["in_flight"]):
        words = _("Stop takes effect after: %(steps)s.") % {"steps": "; ".join(after)}
        return Phase("…", words, is_proven=False)
    if not flying:
        return Phase("…", _("waits for the model’s worker"), is_proven=False)
    words = ngettext(
        "%(n)d action still reports, until %(time)s at the latest",
        "%(n)d actions still report, until %(time)s at the latest",
        flying,
    ) % {"n": flying, "time": clock(run.drain_deadline)}
    return Phase("…", words, is_proven=False)


def _after(stop: StopRequest, moment: datetime) -> str:
    return "+ " + span(max(moment - stop.requested_at, timedelta()))


# --- Numbers -----------------------------------------------------------------------------------
def numbers_of(groups: Groups) -> list[Number]:
    """One number for each group; a sixth for what may still start, while there is any."""
    found = [
        Number(group, str(label), len(groups[group]), TONES.get(group, "plain"))
        for group, label in GROUPS.items()
    ]
    if groups[WAITING]:
        found.append(Number(WAITING, _("Waiting"), len(groups[WAITING]), "plain"))
    return found


def _total(groups: Groups) -> str:
    total = sum(len(calls) for calls in groups.values())
    return ngettext("%(n)d action in all", "%(n)d actions in all", total) % {"n": total}


def not_done_by_stop(groups: Groups, stop: StopRequest, in_undo: Container[str] = ()) -> list[str]:
    """What Stop did not do, said before anybody has to find out."""
    effects = [call for call in groups["done"] if call.tier != Tier.READ_ONLY]
    standing = [call for call in effects if not (call.undo_state or call.pk in in_undo)]
    said = [words for call in effects if (words := _not_called_back(call, stop))]
    if any(undo_of(call) == "possible" for call in standing):
        said.append(_("It did not take back what was done. That stays unless it is undone."))
    if any(undo_of(call) == "impossible" for call in standing):
        said.append(_("What cannot be undone stays for good."))
    if groups["in_flight"]:
        said.append(_("It does not break off what is in flight: that still reports how it ended."))
    if groups["in_doubt"]:
        said.append(_("It does not know what became of what is in doubt. Nothing is sent again."))
    if unfound := [call for call in groups["failed"] if call.reason in MAY_TURN_UP]:
        said.append(_("What counts as not done may still arrive. If it does, it is said here."))
    if not (effects or groups["in_flight"] or groups["in_doubt"] or unfound):
        said.append(_("There was nothing to take back: nothing had been changed."))
    return said


def _not_called_back(call: ToolCall, stop: StopRequest) -> str:
    """Of a call that was on its way at the stop; "" for every other."""
    across = crossing(call, [stop])
    if across and (part := in_part(call)):
        words = {"what": call.in_words, "part": part}
        return _("It came in the middle of “%(what)s”: %(part)s.") % words
    words = {"what": call.in_words, "crossing": across}
    return _("It did not call back “%(what)s”: %(crossing)s.") % words if across else ""
