"""The read side: what pages, API and drills say about a run. Reads the ledger, writes nothing.

Guarantees that every call is in exactly one group, so that the groups add up (I4).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agentruns.models import Checkpoint, Output, Run, StopRequest, ToolCall
from agentruns.protocol.advance import double_of
from agentruns.protocol.consent import DUPLICATE
from agentruns.protocol.ledger import CALLS
from agentruns.protocol.undo import undone_by_itself
from agentruns.protocol.units import in_words, unfinished
from agentruns.states import CALL, GROUPS, NOT_YET_IN_FLIGHT, WAITING
from tools import prepared, registry
from tools.contract import Tier

Groups = dict[str, list[ToolCall]]
IN_FLIGHT = "WHERE t.run_id = %s AND t.state = 'in_flight' ORDER BY t.number"
CHILDREN = "SELECT id, status FROM agentruns_run WHERE parent_id = %s ORDER BY created_at, id"


def undo_of(call: ToolCall) -> str:
    """What undo a call allows: possible, impossible, not_needed, undone; "" if it never landed."""
    if call.undo_state == ToolCall.UndoState.UNDONE:
        return "undone"
    if call.state != "landed":
        return ""
    if call.tier == Tier.READ_ONLY:
        return "not_needed"
    registered = registry.get(call.tool)
    return "possible" if registered and registered.has_compensate else "impossible"


def entry(call: ToolCall) -> dict[str, Any]:
    """One call as the API and the drill list it."""
    return {
        "id": call.pk,
        "tool": call.tool,
        "tier": call.tier,
        "state": call.state,
        "reason": call.reason,
        "summary": call.summary,
        "undo": undo_of(call),
        "attempts": call.attempts,
        "next_attempt_at": call.next_attempt_at.isoformat() if call.next_attempt_at else None,
        "lookups": call.lookups,
        "last_lookup": call.last_lookup,
        "next_lookup_at": call.next_lookup_at.isoformat() if call.next_lookup_at else None,
        "horizon_at": call.horizon_at.isoformat() if call.horizon_at else None,
        "unit": in_words(call) if call.unit else "",
        "approvals_needed": call.consents_needed,
        "approvals_given": call.consent_count,
        "duplicate_of": _duplicate_of(call),
    }


def _duplicate_of(call: ToolCall) -> str:
    """The call whose effect this one would repeat, if that is why it asks."""
    is_asking = call.state == "awaiting_approval" and call.reason == DUPLICATE
    double = double_of(call) if is_asking else None
    return double.pk if double else ""


def groups_of(run: Run) -> Groups:
    """Every call of the run by group, in the model's order; done ones in order of landing.

    The keys are those of states.GROUPS, and `waiting` for what may still start.
    """
    return grouped(CALLS.all("WHERE t.run_id = %s ORDER BY t.number", [run.pk]))


def grouped(calls: Iterable[ToolCall]) -> Groups:
    """groups_of, from calls that were read already."""
    groups: Groups = {name: [] for name in (*GROUPS, WAITING)}
    for call in calls:
        groups[CALL.states[call.state].group].append(call)
    groups["done"].sort(key=lambda call: (call.ended_at is None, call.ended_at))
    return groups


def inventory(run: Run) -> dict[str, list[dict[str, Any]]]:
    """groups_of, as data."""
    return {name: [entry(call) for call in calls] for name, calls in groups_of(run).items()}


def tokens_of(run: Run) -> int:
    """Tokens that the provider says it wrote for the run."""
    return sum(Output.objects.filter(run=run).values_list("tokens_out", flat=True))


def latest_stop(run: Run) -> StopRequest | None:
    return StopRequest.objects.filter(run=run).select_related("requested_by").first()


def children_of(run: Run) -> list[dict[str, Any]]:
    """The runs that `run` started, oldest first."""
    found = prepared.run(CHILDREN, [run.pk])
    return [{"run_id": pk, "status": status} for pk, status in found]


def milliseconds(start: datetime | None, end: datetime | None) -> float | None:
    """From start to end, or None while either is missing."""
    if start is None or end is None:
        return None
    return round((end - start).total_seconds() * 1000, 3)


def stop_answer(run: Run, stop: StopRequest) -> dict[str, Any]:
    """The body that a Stop request gets: as things stood when Stop took effect (protocol §7).

    It is kept with the StopRequest, so that every repeat gets the same.
    """
    calls = groups_of(run)
    groups = {name: [entry(call) for call in calls[name]] for name in GROUPS}
    answer = {
        "run_id": run.pk,
        "phase": run.status,
        "epoch": stop.epoch,
        "won_by": stop.won_by,
        "signal": stop.signal,
        "reason": stop.reason,
        "pending": stop.pending,
        "interrupted": stop.interrupted,
        "requested_by": stop.requested_by.get_username() if stop.requested_by else None,
        "requested_at": stop.requested_at.isoformat(),
        "no_new_effect_ms": milliseconds(stop.requested_at, stop.no_new_effect_at),
        "groups": groups,
        "children": children_of(run),
        "waits_for": {
            "model": bool(run.lease_holder),
            "calls": [call["id"] for call in groups["in_flight"]],
            "until": run.drain_deadline.isoformat() if run.drain_deadline else None,
            "after": waits_after(run, calls["in_flight"]),
        },
    }
    if stop.won_by == StopRequest.WonBy.COMPLETION:
        answer |= {
            "no_new_effect_ms": None,
            "ended_at": run.ended_at.isoformat() if run.ended_at else None,
            "ended_before_ms": milliseconds(run.ended_at, stop.requested_at),
        }
    return answer


def in_flight(run: Run) -> list[ToolCall]:
    return CALLS.all(IN_FLIGHT, [run.pk])


def waits_after(run: Run, flying: Sequence[ToolCall]) -> list[str]:
    """What may only be finished or not begun, and has begun: Stop takes effect after it (§9).
    `flying`: the run's calls in flight.
    """
    alone = [call.in_words for call in flying if call.is_uninterruptible and not call.unit]
    steps = [*(call for call in flying if call.unit), *unfinished(run)]
    return alone + [in_words(step) for step in steps]


@dataclass(frozen=True)
class Foresight:
    """What Stop would do right now: how many leave and cannot be called back, report, drop, can be
    undone later, `partly` or wholly, are undone `by_itself`; and what it would take effect `after`.
    """

    leaving: int
    reporting: int
    dropped: int
    to_undo: int
    partly: int = 0
    by_itself: int = 0
    after: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """In plain words, most important first; none if Stop would meet nothing."""
        after = _("Stop takes effect after: %(steps)s.") % {"steps": "; ".join(self.after)}
        counted = {
            ngettext(
                "%(n)d action is leaving now and cannot be recalled.",
                "%(n)d actions are leaving now and cannot be recalled.",
                self.leaving,
            ): self.leaving,
            ngettext(
                "%(n)d action is under way and will still report.",
                "%(n)d actions are under way and will still report.",
                self.reporting,
            ): self.reporting,
            ngettext(
                "%(n)d drafted action will be dropped.",
                "%(n)d drafted actions will be dropped.",
                self.dropped,
            ): self.dropped,
            ngettext(
                "%(n)d action is done and can be undone afterwards.",
                "%(n)d actions are done and can be undone afterwards.",
                self.to_undo,
            ): self.to_undo,
            ngettext(
                "%(n)d action is done and can be partly undone afterwards.",
                "%(n)d actions are done and can be partly undone afterwards.",
                self.partly,
            ): self.partly,
            ngettext(
                "%(n)d action is done and will then be undone by itself.",
                "%(n)d actions are done and will then be undone by themselves.",
                self.by_itself,
            ): self.by_itself,
        }
        said = [sentence % {"n": n} for sentence, n in counted.items() if n]
        return [after, *said] if self.after else said


def foresight(run: Run) -> Foresight:
    """Count what Stop would meet at this moment."""
    calls = list(ToolCall.objects.filter(run=run))
    flying = [call for call in calls if call.state == "in_flight"]
    kept = {step.pk for step in unfinished(run)}
    possible = [call for call in calls if undo_of(call) == "possible"]
    by_itself = len(undone_by_itself(run, possible))
    partly = sum(call.tier == Tier.COMPENSABLE for call in possible)
    return Foresight(
        leaving=sum(call.tier == Tier.IRREVERSIBLE for call in flying),
        reporting=sum(call.tier != Tier.IRREVERSIBLE for call in flying),
        dropped=sum(call.state in NOT_YET_IN_FLIGHT and call.pk not in kept for call in calls),
        to_undo=len(possible) - partly - by_itself,
        partly=partly,
        by_itself=by_itself,
        after=tuple(waits_after(run, flying)),
    )


def snapshot(run: Run) -> dict[str, Any]:
    """Where the run stands, for whoever decides its next turn (protocol §11)."""
    groups = inventory(run)
    cut = Output.objects.filter(run=run).exclude(status="complete").order_by("-turn").first()
    checkpoint = Checkpoint.objects.filter(run=run).order_by("-seq", "-pk").first()
    return {
        "run_id": run.pk,
        "status": run.status,
        "epoch": run.epoch,
        "plan": [call for calls in groups.values() for call in calls],
        "done": groups["done"],
        "pending": groups[WAITING] + groups["in_flight"] + groups["in_doubt"],
        "irreversible_done": [c for c in groups["done"] if c["tier"] == Tier.IRREVERSIBLE],
        "partial_output": {
            "turn": cut.turn,
            "text": cut.text,
            "offset": cut.offset,
            "status": cut.status,
        }
        if cut
        else None,
        "resume_from": {"turn": checkpoint.turn, "seq": checkpoint.seq, "before": checkpoint.before}
        if checkpoint
        else None,
    }
