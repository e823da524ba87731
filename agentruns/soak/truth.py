"""What a soak proves: the ledger held against the world's own record, by reading both.

- leaked: an effect that should not have left. By the ledger: its call passed the gate after a stop
  and before the run was taken up again (I1). By the world: it is there, and its call says that it
  never started.
- lost: the world has an effect that no row tells of or whose row says that it had none; or a row
  says landed, and the world has nothing.
- doubled: the world has the same effect more than once.
- stuck: something did not come to rest in time (`finale.unsettled`, `finale.slow_to_settle`).
- breaches: everything else that `verify_ledger` finds, over all invariants.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

from django.db.models import Count

from agentruns.models import LedgerEvent, Run, StopRequest, ToolCall
from agentruns.protocol.ledger import PERSON
from agentruns.queries import milliseconds
from agentruns.soak.finale import REASON, slow_to_settle, unsettled
from agentruns.soak.people import Tally
from agentruns.states import CALL
from agentruns.verify import Scope, verify
from tools.contract import Tier
from tools.world.record import RECORDED, effects

Data = dict[str, Any]
SETTLE_GRACE = 60.0  # seconds beyond the drain deadline: a killed sweeper has to come back first
LEDGER_LINES = 60  # of a run that something is wrong with
ZEROS = ("leaked", "lost", "doubled", "stuck", "breaches", "troubles")


@dataclass(frozen=True)
class Finding:
    """Something that must not be, and the run that it happened to ("" if nobody knows)."""

    kind: str
    run_id: str
    what: str


def report_of(tally: Tally, world_dir: Path) -> Data:
    """Everything in numbers, and each finding with the ledger of its run."""
    findings = list(_findings(tally, world_dir))
    found = Counter(finding.kind for finding in findings)
    return {
        **_numbers(tally),
        **{kind: found[kind] for kind in ZEROS},
        "findings": [
            {
                "kind": each.kind,
                "run_id": each.run_id,
                "what": each.what,
                "ledger": ledger_of(each.run_id),
            }
            for each in findings
        ],
    }


def has_passed(report: Data) -> bool:
    """Whether there is a zero wherever one belongs, and every process came back."""
    return not any(report[kind] for kind in ZEROS) and not report.get("given_up")


def ledger_of(run_id: str) -> list[str]:
    """The end of a run's ledger, a line for each event."""
    events = LedgerEvent.objects.filter(run=run_id).order_by("-seq")[:LEDGER_LINES]
    return [
        f"{event.seq} {event.at:%H:%M:%S.%f} {event.kind} {event.call_id or ''} {event.data}"
        for event in reversed(events)
    ]


# --- What must not be ----------------------------------------------------------
def _findings(tally: Tally, world_dir: Path) -> Iterator[Finding]:
    yield from _held_against_the_world(world_dir)
    for run_id, what in [*unsettled(), *slow_to_settle(SETTLE_GRACE)]:
        yield Finding("stuck", run_id, what)
    for result in verify(Scope(world_dir=world_dir)):
        kind = "leaked" if result.invariant.code == "I1" else "breaches"
        for breach in result.breaches:
            yield Finding(kind, breach.run_id, f"{result.invariant.code}: {breach.what}")
    for what in tally.wrong:
        yield Finding("troubles", "", what)


def _held_against_the_world(world_dir: Path) -> Iterator[Finding]:
    # The rows are read first: what lands meanwhile is in the world before it is on record.
    rows = {call.request_id: call for call in ToolCall.objects.exclude(tier=Tier.READ_ONLY)}
    there = Counter((effect.call_key, effect.request_id) for effect in effects(world_dir))
    for (call_key, key), times in there.items():
        call = rows.get(call_key)
        if call is None:
            yield Finding("lost", "", f"{key} is in the world, and on no record")
            continue
        if times > 1:
            yield Finding("doubled", call.run_id, f"call {call.pk} is in the world {times} times")
        if call.state == "failed":
            yield Finding("lost", call.run_id, f"call {call.pk} is in the world, and failed")
        elif CALL.states[call.state].group == "never_started":
            what = f"call {call.pk} is in the world, and {call.state}"
            yield Finding("leaked", call.run_id, what)
    acted = {call_key for call_key, _key in there}
    for call_key, call in rows.items():
        if call.state == "landed" and call.tool in RECORDED and call_key not in acted:
            yield Finding("lost", call.run_id, f"call {call.pk} is landed; the world has nothing")


# --- Numbers ----------------------------------------------------------
def _numbers(tally: Tally) -> Data:
    stops = StopRequest.objects.filter(won_by=StopRequest.WonBy.STOP).exclude(reason=REASON)
    settled = [
        took
        for stop in stops
        if (took := milliseconds(stop.requested_at, stop.settled_at)) is not None
    ]
    events = _counts(LedgerEvent, "kind")
    return {
        "runs": Run.objects.count(),
        "child_runs": Run.objects.filter(parent__isnull=False).count(),
        "stops": stops.count(),
        "stops_too_late": StopRequest.objects.filter(won_by="completion").count(),
        "calls": ToolCall.objects.count(),
        "passed_the_gate": events.get("call.commit_allowed", 0),
        "tried_again": events.get("call.postponed", 0),
        "late_writes_refused": events.get("write.rejected_late", 0),
        "gate_refusals": _refusals(),
        "in_doubt": _doubts(),
        "undone": ToolCall.objects.filter(undo_state="undone").count(),
        "resumed": tally.counts.get("resume", 0),
        "runs_by_status": _counts(Run, "status"),
        "calls_by_state": _counts(ToolCall, "state"),
        "stop_answer_ms": _percentiles(tally.answers),
        "settle_ms": _percentiles(settled),
        "people": dict(sorted(tally.counts.items())),
        "events": events,
    }


def _counts(model: type[Run | ToolCall | LedgerEvent], column: str) -> dict[str, int]:
    counted = model.objects.order_by().values_list(column).annotate(count=Count("*"))
    return dict(counted.order_by("-count"))


def _refusals() -> dict[str, int]:
    """By reason, what the gate did not let through: refused for good, or held back."""
    denied = ToolCall.objects.filter(state="denied").values_list("reason", flat=True)
    refused = LedgerEvent.objects.filter(kind="gate.refused").values_list("data", flat=True)
    return dict(Counter([*denied, *(data["reason"] for data in refused)]).most_common())


def _doubts() -> dict[str, int]:
    """How each call that was in doubt at any time ended; `all` is how many there were."""
    doubted = LedgerEvent.objects.filter(kind="call.in_doubt").values("call")
    ends = {"call.landed": "landed", "call.failed": "did not land", "call.contradicted": "landed"}
    last: dict[str, str] = dict.fromkeys(
        ToolCall.objects.filter(pk__in=doubted).values_list("pk", flat=True), "still open"
    )
    events = LedgerEvent.objects.filter(call__in=doubted, kind__in=ends).order_by("run", "seq")
    for event in events:
        if event.call_id in last:
            last[event.call_id] = f"{_source(event)}: {ends[event.kind]}"
    return {"all": len(last), **Counter(sorted(last.values()))}


def _source(event: LedgerEvent) -> str:
    """Who knew how it ended."""
    if event.actor.startswith(PERSON):
        return "answered"
    return "reported late" if event.actor == "executor" else "looked up"


def _percentiles(values: list[float]) -> dict[str, float] | None:
    if len(values) < 2:
        return None
    cuts = quantiles(values, n=100, method="inclusive")
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "max": round(max(values), 1)}
