"""Read runs with all that is on record about them: many at a time, each batch as of one moment."""

from collections.abc import Iterator

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from agentruns.models import CallItem, LedgerEvent, Output, Run, StopRequest, ToolCall
from agentruns.models.ledger import HASH
from agentruns.postgresql.snapshot import snapshot
from agentruns.protocol.ledger import clock
from agentruns.verify.facts import Event, Facts, Scope
from agentruns.verify.sweeps import Sweeps
from compensation.models import Compensation, UndoRequest
from review.models import Approval

# A batch has no more runs than this, and no more events, unless a single run has.
RUNS, EVENTS = 200, 20_000
# Of a call: what people read, and what the checks and its place in the history need.
OF_A_CALL = (
    *ToolCall.SHOWN.columns,
    *("run_id", "position", "text_offset", "provider_call_id", "args", "state", "salts"),
    *("is_uninterruptible", "deadline_at"),
)

_IS_INTACT = f"{HASH.format(row='agentruns_ledgerevent')} = agentruns_ledgerevent.hash"


def batches(scope: Scope) -> Iterator[list[Facts]]:
    """Every run of `scope`, in order of id. Memory does not grow with their number."""
    sweeps, last = Sweeps(), ""
    while True:
        with snapshot():
            runs = _runs_after(scope, last)
            batch = _facts_of(runs, sweeps)
        if not batch:
            return
        last = runs[-1].pk
        yield batch


def _runs_after(scope: Scope, last: str) -> list[Run]:
    runs = list(scope.runs().filter(pk__gt=last).prefetch_related("agent")[:RUNS])
    total = 0
    for count, run in enumerate(runs):
        total += run.ledger_seq
        if total > EVENTS:
            return runs[: max(count, 1)]
    return runs


def _facts_of(runs: list[Run], sweeps: Sweeps) -> list[Facts]:
    if not runs:
        return []
    now = clock().now
    facts = {run.pk: Facts(run, now, sweeps) for run in runs}
    for event in _events_of(list(facts)):
        facts[event.run_id].events.append(event)
    for call in ToolCall.objects.filter(run__in=facts).order_by("number").only(*OF_A_CALL):
        facts[call.run_id].calls.append(call)
    for item in CallItem.objects.filter(call__run__in=facts).select_related("call"):
        facts[item.call.run_id].items.append(item)
    for stop in StopRequest.objects.filter(run__in=facts).order_by("epoch"):
        facts[stop.run_id].stops.append(stop)
    for output in Output.objects.filter(run__in=facts).order_by("turn"):
        facts[output.run_id].outputs.append(output)
    for output in Output.complete.filter(run__in=facts).order_by("turn"):
        facts[output.run_id].served.append(output)
    for request in UndoRequest.objects.filter(run__in=facts).order_by("created_at"):
        facts[request.run_id].undo_requests.append(request)
    for step in Compensation.objects.filter(request__run__in=facts).select_related("request"):
        facts[step.request.run_id].undo_steps.append(step)
    for approval in Approval.objects.filter(call__run__in=facts).select_related("call"):
        facts[approval.call.run_id].approvals.append(approval)
    return list(facts.values())


def _events_of(run_ids: list[str]) -> Iterator[Event]:
    is_intact = RawSQL(_IS_INTACT, (), output_field=BooleanField())  # noqa: S611  (a constant)
    columns = ("run_id", "seq", "at", "kind", "call_id", "actor", "data", "sets", "prev_hash")
    rows = LedgerEvent.objects.filter(run__in=run_ids).annotate(is_intact=is_intact)
    yield from map(Event._make, rows.order_by("seq").values_list(*columns, "hash", "is_intact"))
