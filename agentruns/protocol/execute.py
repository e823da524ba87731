"""Execute one call: claim, prepare, gate, commit, record. The only caller of a tool's commit.

Guarantees that nothing happens between the gate and the send, that an exception whose effect is
unknown is doubt and not failure, and that a draft which may not go out is dropped.
"""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import pausepoints
from agentruns.models import LedgerEvent, StopRequest, ToolCall
from agentruns.models.shown import is_as_said
from agentruns.protocol.doubt import begin_lookup, record_lookup
from agentruns.protocol.gate import (
    TOOL_CHANGED,
    Claim,
    args_to_send,
    keep_draft,
    pass_gate,
    take_call,
)
from agentruns.protocol.items import CallItems
from agentruns.protocol.ledger import EXECUTOR, SEND_WINDOW, lock_call, record
from agentruns.protocol.outcome import (
    UNCLEAR,
    record_doubt,
    record_failed,
    record_landed,
    record_no_effect,
    record_paused,
)
from agentruns.protocol.recheck import recheck_tool
from agentruns.states import READY
from tools import registry
from tools.contract import (
    Context,
    Draft,
    ItemLog,
    LookupResult,
    PauseSignal,
    Receipt,
    StopSignal,
    Unknown,
)
from tools.errors import NoEffect, ToolError, Unclear
from tools.policy import effective
from tools.registry import RegisteredTool

log = structlog.get_logger(__name__)


def execute_call(call_id: str, *, epoch: int) -> bool:
    """Do the call if its turn has come and nobody else has it. Safe to run twice, or late. Returns
    whether it was this executor's.
    """
    _look_in(call_id)
    asked_at = pausepoints.clock()
    taken = take_call(call_id, epoch=epoch)
    registered = registry.get(taken.call.tool) if taken else None
    if taken is None:
        return False
    if registered is None or taken.has_passed is False:
        return True
    claim, call = taken.claim, taken.call
    items = CallItems(call.pk, claim.token, claim.timeout)
    ctx = context_of(call, items, timeout=claim.timeout)
    if not taken.has_passed:
        _prepare_and_commit(registered, ctx, claim, call)
    elif _is_in_time(claim, asked_at):
        _commit(registered, ctx, taken.args, None, claim, call)
    return True


def _look_in(call_id: str) -> None:
    """Claim and gate are one transaction, so there is no moment between the two. Whoever looks in
    at `claimed` does it before both: the call has its executor, and nothing has been asked.
    """
    if not pausepoints.is_on():
        return
    call = ToolCall.objects.filter(pk=call_id, state__in=READY).first()
    if call is None:
        return
    if registry.get(call.tool) is None or args_to_send(call) is not None:
        pausepoints.reach(call.run_id, f"call:{call.number}:claimed")


def _prepare_and_commit(
    registered: RegisteredTool, ctx: Context, claim: Claim, call: ToolCall
) -> None:
    """Draft, then ask the gate, then send."""
    pausepoints.reach(call.run_id, f"call:{call.number}:claimed")
    try:
        args = call.arguments(registered)
        registered.item_keys(args)
        draft = _prepared(registered, ctx, args, call)
    except NoEffect as error:
        _nothing_happened(claim, call, error)
        return
    except Exception as error:  # noqa: BLE001  (prepare has no effect, whatever went wrong in it)
        record_failed(claim, _code(error), _sentence(error))
        return
    if draft is None or keep_draft(claim, draft):
        asked_at = pausepoints.clock()
        if pass_gate(claim, args) and _is_in_time(claim, asked_at):
            _commit(registered, ctx, args, draft, claim, call)
            return
    if draft is not None and not _may_still_go(call):
        drop_draft(call, draft)


def look_up_call(call_id: str) -> None:
    """Ask the outside system what became of a call, while it is in doubt and for a while after;
    never sends it.
    """
    call = begin_lookup(call_id)
    registered = registry.get(call.tool) if call else None
    if call is None or registered is None or not registered.has_lookup:
        return
    pausepoints.reach(call.run_id, f"call:{call.number}:lookup")
    impl: Any = registered.impl
    try:
        found: LookupResult = impl.lookup(context_of(call))
    except Exception as error:  # noqa: BLE001  (a look-up that fails has decided nothing)
        found = Unknown(_sentence(error))
    pausepoints.reach(call.run_id, f"call:{call.number}:looked_up")
    assert call.looked_up_at is not None
    record_lookup(call_id, found, begun_at=call.looked_up_at)


def context_of(
    call: ToolCall, items: ItemLog | None = None, *, timeout: float | None = None
) -> Context:
    """What a tool is told about the call: its key, its run, who it acts for, its time limit, and
    which of its items are out. `timeout`: seconds; as the tool's policy has it, if not given.
    """
    owner = call.run.owner
    return Context(
        request_id=call.request_id,
        run_id=call.run_id,
        call_id=call.pk,
        actor=owner.get_full_name() or owner.get_username(),
        timeout=effective(call.tool).timeout if timeout is None else timeout,
        items=items or CallItems(call.pk),
    )


def drop_draft(call: ToolCall, draft: Draft) -> None:
    """Let the tool throw its draft away; a draft left over is untidy, never an effect."""
    registered = registry.get(call.tool)
    void: Any = getattr(registered.impl, "void", None) if registered else None
    if void is None:
        return
    try:
        void(context_of(call), draft)
    except Exception:
        log.exception("draft.left_over", call_id=call.pk)


def _prepared(registered: RegisteredTool, ctx: Context, args: Any, call: ToolCall) -> Draft | None:
    if not registered.has_prepare:
        return None
    if call.draft is not None:
        _must_be_as_drafted(call)
        return Draft(call.draft)
    impl: Any = registered.impl
    drafted: Draft | None = impl.prepare(ctx, args)
    return drafted


def _must_be_as_drafted(call: ToolCall) -> None:
    """What was drafted earlier is sent only as the ledger knows it: the row may have been changed
    since, by somebody who has the database. Raises NoEffect.
    """
    told = LedgerEvent.objects.filter(call=call, sets__call__has_key="draft").order_by("-seq")
    said = told.values_list("sets__call__draft", flat=True).first()
    if not is_as_said(call, "draft", said):
        log.error("call.draft_changed", run_id=call.run_id, call_id=call.pk)
        sentence = _("It was not sent: its draft was changed in the database.")
        raise NoEffect("draft_changed", sentence)


def _may_still_go(call: ToolCall) -> bool:
    """Whether the call that did not pass waits, or is another executor's, with the same draft."""
    return ToolCall.objects.filter(pk=call.pk, state__in=(*READY, "in_flight")).exists()


def _is_in_time(claim: Claim, asked_at: float) -> bool:
    """Send at once or not at all: an executor that was stalled after the gate must not act when
    its call has long been looked up, and found not to have happened.
    """
    if pausepoints.clock() - asked_at <= SEND_WINDOW:
        return True
    record_failed(claim, "too_late", _("It was not sent: it had been held up after it was let go."))
    return False


def _commit(
    registered: RegisteredTool,
    ctx: Context,
    args: Any,
    draft: Draft | None,
    claim: Claim,
    call: ToolCall,
) -> None:
    """Send, then record. The gate was passed right before; nothing may come in between."""
    watch = _Watch(ctx.timeout)
    try:
        receipt: Receipt = registered.impl.commit(
            replace(
                ctx,
                sending=watch.sending,
                is_stopped=partial(_is_stopped, call),
                tell=partial(_tell, call),
            ),
            args,
            draft,
        )
    except NoEffect as error:
        pausepoints.reach(call.run_id, f"call:{call.number}:sent")
        if error.is_passing and draft is not None:
            drop_draft(call, draft)  # while the call is still ours: the next attempt makes its own
        _nothing_happened(claim, call, error)
    except StopSignal:
        record_failed(claim, "stopped", "")
    except PauseSignal:
        record_paused(claim)
    except Exception as error:  # noqa: BLE001  (anything else: nobody knows whether it happened)
        pausepoints.reach(call.run_id, f"call:{call.number}:sent")
        code = UNCLEAR if isinstance(error, Unclear) else "no_answer"
        record_doubt(claim, _sentence(error), code=code)
    else:
        measured = watch.measured()
        pausepoints.reach(call.run_id, f"call:{call.number}:sent")
        record_landed(claim, receipt, **measured)


def _nothing_happened(claim: Claim, call: ToolCall, error: NoEffect) -> None:
    record_no_effect(claim, error)
    if error.code == TOOL_CHANGED:  # so have others that wait, and people are asked about them
        recheck_tool(call.tool, by=None)


def _is_stopped(call: ToolCall) -> bool:
    """Whether a stop came after what began in the call's epoch. One cheap read, without a lock:
    what follows from it is only a question to the outside system.
    """
    stops = StopRequest.objects.filter(run=call.run_id, epoch__gt=call.epoch)
    return stops.filter(won_by=StopRequest.WonBy.STOP).exists()


def _tell(call: ToolCall, kind: str, /, **data: Any) -> None:
    """Record what a tool has to say of a call under way. It changes nothing."""
    with transaction.atomic(durable=True):
        run, locked = lock_call(call.pk)
        record(run, kind, actor=EXECUTOR, call=locked, **data)


class _Watch:
    """Measures one attempt, from the gate to its end; a tool that has not sent anything in all its
    time must not begin to, when the call is about to be in doubt, and looked up.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._began = time.monotonic()
        self._sent: float | None = None

    def sending(self) -> None:
        """A tool's `ctx.sending`: the first counts, whatever it sends after that."""
        if self._sent is not None:
            return
        self._sent = time.monotonic() - self._began
        if self._sent > self._timeout:
            raise NoEffect(
                "too_late", _("It was not sent: getting ready had taken all of its time.")
            )

    def measured(self) -> dict[str, float]:
        """Milliseconds, for the audit: until it sent, if the tool said when, and altogether."""
        took = {"took_ms": time.monotonic() - self._began}
        if self._sent is not None:
            took["gate_to_send_ms"] = self._sent
        return {name: round(seconds * 1000, 1) for name, seconds in took.items()}


def _code(error: Exception) -> str:
    return error.code if isinstance(error, ToolError) else "prepare_failed"


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"
