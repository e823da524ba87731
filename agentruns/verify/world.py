"""I2, I3 and I9 from outside: the ledger against the world's own record."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from django.db.models import QuerySet

from agentruns.models import CallItem, ToolCall
from agentruns.postgresql.snapshot import snapshot
from agentruns.states import READY
from agentruns.verify.facts import Breach, Finding, Scope
from compensation.models import Compensation
from tools.contract import Tier
from tools.world.record import RECORDED, Effect, Part, effects_of, parts

BATCH = 500
OF_A_CALL = ("run_id", "request_id", "state")
# Where the effect of a call may be out there.
OUTSIDE = ("landed", "in_doubt", "in_flight")


def every_effect_has_its_row(scope: Scope) -> Iterator[Finding]:
    """I2: no orphans, no doubles. An item of a call counts to that call, and is one of its own."""
    for part in _parts(scope):
        seen: Counter[str] = Counter()
        since = scope.since
        found = (each for each in effects_of(part) if since is None or each.at >= since)
        while batch := list(islice(found, BATCH)):
            keys = {effect.call_key for effect in batch}
            found_rows = ToolCall.objects.filter(request_id__in=keys).only(*OF_A_CALL)
            rows = {call.request_id: call for call in found_rows}
            items = _items_of(rows.values())
            for effect in batch:
                row = rows.get(effect.call_key)
                if scope.run_ids and (row is None or row.run_id not in scope.run_ids):
                    continue
                seen[effect.request_id] += 1
                own = items.get(row.pk, []) if row else []
                yield _finding_of_effect(effect, row, own, seen[effect.request_id])


def every_landed_row_has_its_effect(scope: Scope) -> Iterator[Finding]:
    """I3, for the tools whose effects the world records; what was undone is left aside."""
    landed = _calls(scope).filter(state="landed", undo_state="").exclude(tier=Tier.READ_ONLY)
    for part, rows in _before_the_world(scope, landed):
        there = {effect.request_id for effect in effects_of(part)}
        while batch := list(islice(rows, BATCH)):
            items = _items_of(batch)
            for call in batch:
                expected = items.get(call.pk) or [call.request_id]
                missing = [key for key in expected if key not in there]
                what = f"call {call.pk} is landed; the world knows nothing of {missing}"
                yield Breach(call.run_id, what) if missing else None


def what_is_undone_is_gone(scope: Scope) -> Iterator[Finding]:
    """I9, from the world's side: the undo had its effect, and had it once.

    Where a person has undone it by hand, their word stands for it: by what they did the world
    may not tell that it was undone.
    """
    undone = _calls(scope).filter(undo_state=ToolCall.UndoState.UNDONE)
    for part, rows in _before_the_world(scope, undone):
        by_hand = frozenset(_done_by_hand(scope))
        there: dict[str, list[Effect]] = defaultdict(list)
        for effect in effects_of(part):
            there[effect.call_key].append(effect)
        for call in rows:
            found = there.get(call.request_id, [])
            yield _finding_of_undo(call, found, is_by_hand=call.pk in by_hand)


def _finding_of_effect(
    effect: Effect, row: ToolCall | None, items: list[str], times: int
) -> Finding:
    what = f"{effect.tool} {effect.request_id or '(no key)'} at {effect.at.isoformat()}"
    if row is None:
        return Breach("", f"{what} is in the world, and on no record")
    is_kept = effect.request_id in items
    if row.state not in OUTSIDE and not (is_kept and row.state in READY):
        return Breach(row.run_id, f"{what} is in the world; call {row.pk} is {row.state}")
    if row.state == "landed" and effect.is_item and not is_kept:
        return Breach(row.run_id, f"{what} is in the world; call {row.pk} has no such item")
    if times > 1:
        return Breach(row.run_id, f"{what} is in the world {times} times")
    return None


def _done_by_hand(scope: Scope) -> QuerySet[Compensation, str]:
    """The calls that a person has undone, by id."""
    steps = Compensation.objects.filter(call__run__in=scope.runs(), state="undone")
    return steps.exclude(settled_by=None).values_list("call_id", flat=True)


def _finding_of_undo(call: ToolCall, there: list[Effect], *, is_by_hand: bool) -> Finding:
    if not is_by_hand and any(effect.undone_at is None for effect in there):
        return Breach(call.run_id, f"call {call.pk} is undone; in the world it stands")
    times = max((effect.removals for effect in there), default=0)
    if times > 1:
        return Breach(call.run_id, f"call {call.pk} was taken out of the world {times} times")
    return None


def _parts(scope: Scope) -> list[Part]:
    return parts(scope.world_dir) if scope.world_dir else []


def _before_the_world(
    scope: Scope, calls: QuerySet[ToolCall]
) -> Iterator[tuple[Part, Iterator[ToolCall]]]:
    """Each part of the world, with the rows whose effects are in it.

    The rows are as of a moment before the part is read: what happens meanwhile is in the world
    before it is on record. Where there are no rows, nothing is read.
    """
    for part in _parts(scope):
        with snapshot():
            rows = calls.iterator(chunk_size=BATCH)
            first = list(islice(rows, 1))
            if not first:
                return
            of_part = (call for call in chain(first, rows) if part.has(call.request_id))
            yield part, of_part


def _calls(scope: Scope) -> QuerySet[ToolCall]:
    calls = ToolCall.objects.filter(run__in=scope.runs(), tool__in=RECORDED)
    return calls.only(*OF_A_CALL)


def _items_of(calls: Iterable[ToolCall]) -> dict[str, list[str]]:
    """The keys of the items that each call has had, by the call's id."""
    found: dict[str, list[str]] = defaultdict(list)
    items = CallItem.objects.filter(call__in=[call.pk for call in calls])
    for pk, key, number in items.values_list("call_id", "call__request_id", "position"):
        found[pk].append(f"{key}/{number}")
    return found
