"""A turn: what the driver may write while the model speaks, and how the turn ends (protocol §6).

Guarantees that every call is on record before anything acts on it, that an effect waits for the
clean end of the answer which asked for it, and that an answer cut off in any way asks for nothing.
"""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agentruns import doorbell, ids, pausepoints
from agentruns.models import Run, ToolCall
from agentruns.protocol.advance import advance
from agentruns.protocol.consent import ask
from agentruns.protocol.gate import deny, policy_of, refusal
from agentruns.protocol.lease import (
    Fragment,
    Lease,
    cut_output,
    drop_turn,
    finish_output,
    is_ours,
    refuse_late,
)
from agentruns.protocol.ledger import (
    AGENT,
    DRIVER,
    add,
    clock,
    lock_run,
    move_call,
    move_run,
    record,
    save,
)
from agentruns.protocol.sight import Sight, look
from tools import registry, texts
from tools.digest import args_digest
from tools.errors import BadArguments
from tools.policy import Policy, effective
from tools.registry import RegisteredTool
from tools.secrets import masked, secrets_of


@dataclass(frozen=True)
class Proposal:
    """A call as the model wrote it: `raw_args` is JSON text, `offset` its place in the text."""

    tool: str
    raw_args: str
    provider_call_id: str
    offset: int


def propose_call(lease: Lease, proposal: Proposal) -> ToolCall | None:
    """Write the call into the ledger; a read goes out at once, an effect is buffered.

    An unknown tool is denied, and arguments that do not fit are a failure before the gate: the
    model is told either. None, and recorded, if the run is no longer this driver's.
    """
    with transaction.atomic(durable=True):
        run = lock_run(lease.run_id)
        if not is_ours(run, lease):
            refuse_late(run, lease, "propose_call")
            return None
        policy = effective(proposal.tool, args=proposal.raw_args or "{}")
        call, problem = _written(run, proposal, policy)
        sets = add(call)
        about = {"tool": call.tool, "args": call.args}
        record(run, "call.proposed", actor=AGENT, call=call, sets=sets, **about)
        _route(run, call, policy, problem)
    pausepoints.reach(run.pk, f"call:{call.number}:proposed")
    if call.state == "buffered":
        pausepoints.reach(run.pk, f"call:{call.number}:buffered")
    return call


def finish_turn(lease: Lease, fragment: Fragment, finish_reason: str) -> bool:
    """The answer ended cleanly: it is complete, and what it asked for may go out, in order."""
    with transaction.atomic(durable=True):
        run = lock_run(lease.run_id)
        if not is_ours(run, lease):
            refuse_late(run, lease, "finish_turn")
            return False
        finish_output(run, lease.output_id, clock().now, fragment, finish_reason)
        save(run, lease_holder="", lease_expires_at=None)
        buffered = ToolCall.objects.filter(run=run, turn=lease.turn, state="buffered")
        for call_id in list(buffered.values_list("pk", flat=True)):
            _release(look(call_id))
        advance(run)
        return True


def break_turn(lease: Lease, fragment: Fragment, code: str, detail: str) -> bool:
    """The answer did not end cleanly: its fragment is kept, its buffer dropped, the run failed."""
    with transaction.atomic(durable=True):
        run = lock_run(lease.run_id)
        if not is_ours(run, lease):
            refuse_late(run, lease, "break_turn")
            return False
        now = clock().now
        cut_output(run, lease.output_id, now, fragment, code)
        drop_turn(run, lease.turn, now, "answer_cut", actor=DRIVER)
        move_run(
            run,
            "fail",
            actor=DRIVER,
            data={"failure": code},
            failure=code,
            failure_detail=detail,
            lease_holder="",
            lease_expires_at=None,
            ended_at=now,
        )
        return True


def _written(run: Run, proposal: Proposal, policy: Policy) -> tuple[ToolCall, BadArguments | None]:
    """The call as a row, not saved yet; with it what is wrong with its arguments, if anything."""
    registered = registry.get(proposal.tool)
    problem = None
    fields: dict[str, Any] = {
        "summary": texts.line(proposal.tool, texts.LONGEST["summary"]),
        "args": {"text": texts.cut(proposal.raw_args, texts.LONGEST_UNREAD)},
    }
    if registered is not None:
        try:
            fields = _read(registered, proposal)
        except BadArguments as error:
            problem = error
            fields["summary"] = texts.line(registered.title, texts.LONGEST["summary"])
            if registered.has_secrets:
                fields["args"] = {"text": _("Not kept: there may be a secret in it.")}
        fields["tool_revision"] = registered.revision
        fields["is_uninterruptible"] = registered.uninterruptible
    siblings = ToolCall.objects.filter(run=run)
    call = ToolCall(
        run=run,
        turn=run.turn,
        position=siblings.filter(turn=run.turn).count(),
        number=siblings.count() + 1,
        epoch=run.epoch,
        text_offset=proposal.offset,
        provider_call_id=_id_in_history(siblings, proposal.provider_call_id[:200]),
        tool=proposal.tool[: texts.LONGEST_NAME],
        tier=policy.tier,
        is_eager=policy.eager,
        proposed_at=clock().now,
        **fields,
    )
    return call, problem


def _read(registered: RegisteredTool, proposal: Proposal) -> dict[str, Any]:
    """What the arguments say, as columns. Raises BadArguments."""
    args = registered.take(proposal.raw_args or "{}")
    unit, step, of = registered.unit_of_call(args) or ("", 0, 0)
    return {
        "args": masked(args),
        "secrets": secrets_of(args) or None,
        "args_digest": args_digest(args),
        "effect_digest": registered.effect_digest(args),
        "summary": registered.describe(args),
        "unit": unit,
        "unit_step": step,
        "unit_of": of,
    }


def _id_in_history(siblings: QuerySet[ToolCall], given: str) -> str:
    """The provider's name for the call, or one of ours if it gave none or gave it twice: in a
    history, calls and results find each other by it (I11).
    """
    is_taken = not given or siblings.filter(provider_call_id=given).exists()
    return ids.call_id() if is_taken else given


def _route(run: Run, call: ToolCall, policy: Policy, problem: BadArguments | None) -> None:
    now = clock().now
    if not policy.known:
        move_call(run, call, "deny", actor=DRIVER, reason="unknown_tool", ended_at=now)
    elif problem is not None:
        detail = "; ".join(problem.reasons)
        move_call(
            run, call, "fail", actor=DRIVER, reason="bad_arguments", detail=detail, ended_at=now
        )
    elif policy.eager:
        move_call(run, call, "approve", actor=DRIVER, data={"by": "tier"})
        doorbell.ring_task("agentruns.tasks.act", call.pk, run.epoch)
    else:
        move_call(run, call, "buffer", actor=DRIVER)


def _release(sight: Sight) -> None:
    """A buffered call whose answer ended: it cannot go any more, a person's consent is needed, or
    it goes by its tier.
    """
    run, call, policy = sight.run, sight.call, policy_of(sight)
    if call.state != "buffered":  # a step of a unit, of which another one was denied
        return
    if reason := refusal(sight):
        deny(run, call, reason, actor=DRIVER, now=sight.now)
    elif policy.needs_approval or sight.is_double:
        ask(run, call, approvals=max(1, policy.approvals), is_double=sight.is_double)
    else:
        move_call(run, call, "approve", actor=DRIVER, data={"by": "tier"})
