"""Items: a call with several effects leaves a receipt for each (protocol §9).

Guarantees that an item is on record before the next one begins; that after a stop or a pause no
further item begins; and that a call some of whose items are out is never called failed, dropped
or denied: it ends landed, with what it has.
"""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from agentruns import alarm, pausepoints
from agentruns.models import CallItem, Run, ToolCall
from agentruns.protocol.ledger import (
    EXECUTOR,
    SEND_WINDOW,
    add,
    clock,
    lock_call,
    move_call,
    record,
    report_by,
    save,
)
from tools import registry
from tools.contract import (
    Data,
    LookupResult,
    NotLanded,
    PauseSignal,
    Receipt,
    StopSignal,
    Unknown,
)
from tools.errors import ToolError
from tools.policy import effective

NAMED = 20  # of the items that were not done, to the model


@dataclass(frozen=True)
class CallItems:
    """The item log of one attempt (a tools.contract.ItemLog). `timeout`: seconds for each item, as
    the executor was told; as the tool's policy has it, if not given.
    """

    call_id: str
    token: str = ""
    timeout: float | None = None

    def done(self) -> dict[str, Data]:
        return receipts_of(self.call_id)

    def land(self, key: str, receipt: Data) -> None:
        """Keep the receipt, whatever has become of the run; then tell whether to go on."""
        alarm.wind_again()
        asked_at = pausepoints.clock()
        with transaction.atomic(durable=True):
            run, call = lock_call(self.call_id)
            keep(run, call, {key: receipt}, actor=EXECUTOR)
            position = keys_of(call).index(key) + 1
            signal = _signal(run, call, self.token)
            if call.state == "in_flight" and call.claim_token == self.token:
                timeout = effective(call.tool).timeout if self.timeout is None else self.timeout
                save(call, deadline_at=report_by(clock().now, timeout))
        # As at the gate: who was held up here does not act on an old answer, but asks again.
        if signal is None and pausepoints.clock() - asked_at > SEND_WINDOW:
            signal = PauseSignal("it was held up")
        pausepoints.reach(run.pk, f"call:{call.number}:item:{position}")
        if signal is not None and position < len(keys_of(call)):
            raise signal


def keys_of(call: ToolCall) -> list[str]:
    """What the call's tool calls its items, in order; none if it has none."""
    registered = registry.get(call.tool)
    if registered is None or not registered.has_items:
        return []
    try:
        return registered.item_keys(call.arguments(registered))
    except ToolError:
        return []


def receipts_of(call_id: str) -> dict[str, Data]:
    """The items that are out, in their order."""
    return dict(CallItem.objects.filter(call=call_id).values_list("key", "receipt"))


def keep(run: Run, call: ToolCall, receipts: dict[str, Data], *, actor: str) -> None:
    """Under the run's lock: record items that are out, unless they are on record already.

    Raises ValueError for one that the call never had.
    """
    keys, known = keys_of(call), receipts_of(call.pk)
    positions = {key: position for position, key in enumerate(keys, 1)}
    for key in [key for key in receipts if key not in known]:
        if (position := positions.get(key)) is None:
            raise ValueError(f"{key} is no item of {call.pk}")
        facts = {"key": key, "receipt": receipts[key], "at": clock().now}
        sets = add(CallItem(call=call, position=position, **facts))
        place = {"key": key, "position": position, "of": len(keys)}
        record(run, "call.item_landed", actor=actor, call=call, sets=sets, **place)


def has_any(call: ToolCall) -> bool:
    """Whether items of the call are out."""
    registered = registry.get(call.tool)
    may_have = registered is None or registered.has_items
    return may_have and CallItem.objects.filter(call=call).exists()


def progress(call: ToolCall) -> dict[str, int]:
    """How many of the call's items are out, and how many were asked for; nothing without items."""
    keys = keys_of(call)
    return {"items": len(receipts_of(call.pk)), "of": len(keys)} if keys else {}


def understood(call: ToolCall, found: LookupResult) -> LookupResult:
    """What an answer to a look-up means for a call with items. The one in doubt is the next one:
    if the outside has none but those on record, that one has not landed. A receipt that does not
    say which are there decides nothing.
    """
    keys = keys_of(call)
    if not isinstance(found, Receipt) or not keys:
        return found
    there = found.data.get("items")
    if not isinstance(there, dict):
        return Unknown("it does not say which items are there")
    known = receipts_of(call.pk)
    is_news = any(key not in known for key in there.keys() & set(keys))
    return found if is_news or len(known) == len(keys) else NotLanded()


def completed(run: Run, call: ToolCall, receipt: Receipt, *, actor: str) -> Receipt:
    """Under the run's lock: `receipt` with every item that is out; those which it brings, as an
    answer to a look-up does, are kept before.
    """
    keys = keys_of(call)
    if not keys:
        return receipt
    brought = receipt.data.get("items", {})
    wanted = set(keys)
    keep(run, call, {key: data for key, data in brought.items() if key in wanted}, actor=actor)
    return Receipt(
        receipt.data | {"items": receipts_of(call.pk), "of": len(keys)},
        receipt.response or in_part(call, "").response,
    )


def in_part(call: ToolCall, why: str) -> Receipt:
    """The receipt of a call that goes no further than it has come. `why`: a code, or a reason."""
    keys, done = keys_of(call), receipts_of(call.pk)
    left = [key for key in keys if key not in done]
    said = f"{len(done)} of {len(keys)} done{f' ({why})' if why else ''}."
    if left:
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        said += f" Not done: {', '.join(left[:NAMED])}{more}."
    return Receipt({"items": done, "of": len(keys)}, said)


def end(
    run: Run, call: ToolCall, verb: str, *, actor: str, reason: str, data: Data, **fields: Any
) -> None:
    """Under the run's lock: end a call that has not started, or not started again, by `verb`;
    if items of it are out, then as landed with those.
    """
    if not has_any(call):
        move_call(run, call, verb, actor=actor, data=data, reason=reason, **fields)
        return
    receipt = in_part(call, reason)
    data = data | {"why": reason} | progress(call)
    kept = {"receipt": receipt.data, "response": receipt.response, "reason": ""}
    move_call(run, call, "conclude", actor=actor, data=data, **(fields | kept))


def _signal(run: Run, call: ToolCall, token: str) -> BaseException | None:
    """What keeps the next item from beginning, if anything does."""
    if call.state != "in_flight" or call.claim_token != token:
        return StopSignal("its time was over")
    if call.is_uninterruptible:
        return None
    if run.epoch != call.epoch or not run.is_active:
        return StopSignal("the run was stopped")
    return PauseSignal("the run is held") if run.status == "suspended" else None
