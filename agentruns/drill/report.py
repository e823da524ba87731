"""What a drill found out: the ledger, the world and the provider, each by its own record."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from agentruns.drill.play import Plan, Played
from agentruns.drill.points import NEVER
from agentruns.models import LedgerEvent, Output, Run, StopRequest, ToolCall
from agentruns.queries import inventory, milliseconds
from agentruns.states import GROUPS
from agentruns.verify import Scope, verify
from tools.world.provider_record import ModelRequest, model_requests
from tools.world.record import Effect, effects

Data = dict[str, Any]
LATE = timedelta(milliseconds=250)  # a token later than this after Stop is one too many


def report_of(plan: Plan, played: Played) -> Data:
    """The report, ready for JSON. `passed` is the verdict: see `has_passed`."""
    run = Run.objects.get(pk=played.run_id)
    calls = {call.request_id: call for call in ToolCall.objects.filter(run=run)}
    asked = list(StopRequest.objects.filter(run=run).order_by("epoch"))
    stops = [stop for stop in asked if stop.won_by == StopRequest.WonBy.STOP]
    world = effects(settings.WORLD_DIR)
    there = [each for each in world if each.call_key in calls]
    requests = [each for each in model_requests(settings.WORLD_DIR) if each.run == run.pk]
    groups = inventory(run)
    family = [run, run.parent] if run.parent else [run]
    breaches = [*_breaches(family), *_orphans(run, world)]
    return {
        "run_id": run.pk,
        "scenario": plan.scenario,
        "parent": _parent(plan, run.parent) if run.parent else None,
        "stop_at": " ".join(point.text for point in plan.stop_at) or NEVER,
        "status": run.status,
        "is_settled": played.is_settled,
        "stop": _stop(asked[0], played, requests) if asked else None,
        "killed": [{"at": at, "pid": pid} for at, pid in played.killed],
        "twice": [{"at": at, "task": task} for at, task in played.twice],
        "lost": played.lost,
        "refused": list(played.refused),
        "doubts": _doubts(run),
        "groups": {name: groups[name] for name in GROUPS},
        "world": _world(there, calls),
        "tokens": _tokens(run, requests, stops[0] if stops else None),
        "leaked": [leak for each in family for leak in leaks_of(each, world)],
        "breaches": breaches,
        "agreement": not breaches,
    }


def leaks_of(run: Run, world: list[Effect]) -> list[Data]:
    """I1, by the ledger and by the world's own clock, for each Stop of the run."""
    calls = {call.request_id: call for call in ToolCall.objects.filter(run=run)}
    there = [effect for effect in world if effect.call_key in calls]
    stops = StopRequest.objects.filter(run=run, won_by=StopRequest.WonBy.STOP)
    return [
        leak
        for stop in stops
        for leak in (*_leaks_by_ledger(run, stop), *_leaks_by_world(there, calls, stop))
    ]


def has_passed(report: Data) -> bool:
    """Ledger and world agree, nothing leaked, and the run came to rest."""
    return report["agreement"] and not report["leaked"] and report["is_settled"]


def _parent(plan: Plan, parent: Run) -> Data:
    return {"run_id": parent.pk, "scenario": plan.parent, "status": parent.status}


def _breaches(runs: list[Run]) -> list[Data]:
    """Every invariant that these runs break, their effects in the world included."""
    scope = Scope(world_dir=settings.WORLD_DIR, run_ids=tuple(run.pk for run in runs))
    return [
        {"invariant": result.invariant.code, "what": breach.what}
        for result in verify(scope)
        for breach in result.breaches
    ]


def _orphans(run: Run, world: list[Effect]) -> Iterator[Data]:
    """Effects since the run began that are on no record at all: they may be this run's."""
    since = [each for each in world if each.at >= run.created_at]
    keys = [each.call_key for each in since]
    known = set(ToolCall.objects.filter(request_id__in=keys).values_list("request_id", flat=True))
    for each in since:
        # A key of ours; anybody may use the demo world's servers by hand.
        if each.request_id.startswith("req_") and each.call_key not in known:
            what = f"{each.tool} {each.request_id} is in the world, and on no record"
            yield {"invariant": "I2", "what": what}


def _stop(stop: StopRequest, played: Played, requests: list[ModelRequest]) -> Data:
    cut = [each.ended_at for each in requests if each.end == "closed_by_client" and each.ended_at]
    closed = [at for at in cut if at >= stop.requested_at]
    return {
        "epoch": stop.epoch,
        "won_by": stop.won_by,
        "requested_at": stop.requested_at.isoformat(),
        "answer_ms": None if played.answer_ms is None else round(played.answer_ms, 3),
        "no_new_effect_ms": milliseconds(stop.requested_at, stop.no_new_effect_at),
        "generation_closed_ms": milliseconds(stop.requested_at, closed[0]) if closed else None,
        "safe_stop_ms": milliseconds(stop.requested_at, stop.settled_at),
    }


def _doubts(run: Run) -> list[Data]:
    """The calls that were in doubt at any time, and what became of that."""
    doubted = LedgerEvent.objects.filter(run=run, kind="call.in_doubt")
    calls = ToolCall.objects.filter(pk__in=doubted.values("call")).order_by("number")
    return [
        {"id": call.pk, "tool": call.tool, "found": _found(call), "state": call.state}
        for call in calls
    ]


def _found(call: ToolCall) -> str | None:
    """What the last look-up said: Receipt, NotLanded, Unknown; None if there was none."""
    last = LedgerEvent.objects.filter(call=call, kind="call.looked_up").order_by("-seq").first()
    return last.data["found"] if last else None


def _world(there: list[Effect], calls: dict[str, ToolCall]) -> Data:
    """Per tool, each effect as the world recorded it, and whose it is."""
    found: dict[str, list[Data]] = defaultdict(list)
    for effect in there:
        call = calls[effect.call_key]
        found[effect.tool].append(
            {"call": call.pk, "at": effect.at.isoformat(), "what": effect.data}
        )
    return dict(found)


def _tokens(run: Run, requests: list[ModelRequest], stop: StopRequest | None) -> Data:
    """`shown`: of prose, as the ledger kept it. The rest counts what the provider generated; after
    the stop, what it was not asked for by the run as it was taken up again.
    """
    texts = Output.objects.filter(run=run).values_list("text", flat=True)
    resumed = LedgerEvent.objects.filter(run=run, kind="run.requeued").order_by("seq")
    until = resumed.values_list("at", flat=True).first()
    before = [each for each in requests if until is None or each.started_at < until]
    return {
        "shown": sum(len(text.split()) for text in texts),
        "generated": sum(len(each.token_times) for each in requests),
        "after_stop": _after(before, stop.requested_at) if stop else 0,
        "after_stop_250ms": _after(before, stop.requested_at + LATE) if stop else 0,
    }


def _after(requests: list[ModelRequest], moment: datetime) -> int:
    return sum(each.tokens_after(moment) for each in requests)


def _leaks_by_ledger(run: Run, stop: StopRequest) -> Iterator[Data]:
    """I1 by order: a gate that opened after the stop, on an authority from before it."""
    asked = LedgerEvent.objects.get(run=run, kind="stop.requested", data__epoch=stop.epoch)
    passed = LedgerEvent.objects.filter(
        run=run,
        kind="call.commit_allowed",
        seq__gt=asked.seq,
        data__epoch__lte=stop.epoch,
        call__unit="",  # a step of a unit that had begun
    )
    for event in passed:
        why = _("It passed the gate after Stop (seq %(seq)d).") % {"seq": event.seq}
        yield {"call": event.call_id, "by": "ledger", "why": why}


def _leaks_by_world(
    there: list[Effect], calls: dict[str, ToolCall], stop: StopRequest
) -> Iterator[Data]:
    """I1 by the world's own clock: an effect after the stop that had not left before it, and was
    not let go anew when the run was resumed.
    """
    for effect in there:
        call = calls[effect.call_key]
        had_left = call.gate_passed_at and call.gate_passed_at < stop.no_new_effect_at
        if call.unit or call.epoch > stop.epoch or had_left:
            continue
        if effect.at > stop.no_new_effect_at:
            why = _("It happened at %(at)s, after Stop.") % {"at": effect.at.isoformat()}
            yield {"call": call.pk, "by": "world", "why": why}
