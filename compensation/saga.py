"""Undo: a saga of its own, and the only writer of UndoRequest and Compensation (protocol §10).

Guarantees that undo begins only once a run does not act; that steps go one at a time, the call
that landed last first; that a call is undone at most once and never while it is in doubt; that
trouble is retried with growing pauses, a bounded number of times, and then left to a person,
visibly; and that no step begins once somebody has stopped the undo. A worker may die at any
point: its claim runs out, and the step is done again under the same key, which every tool's
`compensate` takes as the same undo.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from agentruns import alarm, doorbell, pausepoints
from agentruns.errors import BadInput, NotFound, WrongState
from agentruns.models import Run, StopRequest, ToolCall
from agentruns.models.shown import Sets
from agentruns.protocol.execute import context_of
from agentruns.protocol.ledger import EXECUTOR, add, change, clock, lock_run, person, record, save
from agentruns.protocol.undo import (
    ALLOWS_UNDO,
    due_stop,
    mark_undone,
    must_not_act,
    take_due,
    undone_by_itself,
)
from agentruns.reminders import reminders
from agentruns.rights import Person, may_undo, require
from compensation.gate import refusal
from compensation.models import Compensation, UndoRequest
from compensation.queries import (
    PreviewItem,
    foresee,
    in_undo_order,
    latest_steps,
    living_steps,
    stands,
)
from compensation.states import COMPENSATION, LIVING, WITHOUT_EFFECT
from compensation.trouble import in_words
from tools import registry
from tools.contract import CannotUndo, Changed, Receipt, UndoReceipt, UndoResult
from tools.policy import effective

ATTEMPT_LIMIT = 6
LONGEST_PAUSE = 60  # seconds
REASON_LENGTH = 2000
# One undo may ask the outside system several times, and each answer has the tool's time limit; of
# a call with items, each item is looked at and taken back.
ANSWERS_PER_UNDO = 5
ANSWERS_PER_ITEM = 2
UNDONE, LEAVE = "undone", "leave"  # how a person settles what did not work

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Claim:
    """One executor's right to one attempt at one step, for so many seconds."""

    run_id: str
    step_id: str
    token: str
    seconds: float


@dataclass(frozen=True)
class Trouble:
    """An attempt that did not work; it may work later."""

    detail: str


def preview(run: Run, call_ids: Iterable[str] | None = None) -> list[PreviewItem]:
    """What undo would do with these calls (default: all), in the order in which it would.

    Raises BadInput for a call that is not of this run.
    """
    steps = latest_steps(run)
    return [foresee(call, steps.get(call.pk)) for call in _chosen(run, call_ids)]


def request_undo(run_id: str, *, by: Person, call_ids: Iterable[str]) -> UndoRequest:
    """Plan the undo of these calls, and ring for the first step.

    A call that is undone, or is being undone, is not undone again: if that leaves nothing to
    plan, the request that did it is returned. Raises WrongState while the run acts or if a call
    cannot be undone; BadInput, NotAllowed, NotFound.
    """
    pausepoints.reach(run_id, "undo:begin")
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        asker = require(by, run, allowed=may_undo(by, run))
        must_not_act(run)
        calls = _chosen(run, call_ids)
        if not calls:
            raise BadInput(_("Choose what you want undone."), field="call_ids")
        steps = latest_steps(run)
        items = [foresee(call, steps.get(call.pk)) for call in calls]
        if refused := next((i for i in items if not i.can_undo and not stands(i, steps)), None):
            sentence = f"{refused.call.in_words}: {refused.text}"
            raise WrongState(sentence, call_id=refused.call.pk, reason=refused.code)
        new = [item.call for item in items if item.can_undo]
        request = _plan(run, asker, new) if new else steps[calls[0].pk].request
        doorbell.ring_task("compensation.tasks.undo_next", run.pk)
    pausepoints.reach(run_id, "undo:planned")
    return request


def try_again(step_id: str, *, by: Person) -> UndoRequest:
    """Ask anew for what did not work, was dropped, or was left, under the authority of `by`.

    Raises as request_undo does.
    """
    step = _find(step_id)
    if step.state not in WITHOUT_EFFECT:
        raise WrongState(_("This has not been given up."), state=step.state)
    return request_undo(step.call.run_id, by=by, call_ids=[step.call_id])


def undo_after_stop(run_id: str) -> UndoRequest | None:
    """Plan what is undone by itself after the Stop that the run is under, once per Stop.

    It has the authority of whoever pressed Stop, of the owner where nobody did. None if nothing
    is due, if somebody has let the run go on, or as long as such a call is in doubt.
    """
    pausepoints.reach(run_id, "undo:begin")
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        stop = due_stop(run)
        wanted = undone_by_itself(run, ToolCall.objects.filter(run=run)) if stop else []
        if any(call.state == "in_doubt" for call in wanted):
            return None
        take_due(run)
        request = _follow(run, stop, wanted) if stop and run.status in ALLOWS_UNDO else None
    pausepoints.reach(run_id, "undo:planned")
    return request


def _follow(run: Run, stop: StopRequest, wanted: list[ToolCall]) -> UndoRequest | None:
    """What somebody has begun to undo, or has said should stay, is theirs to go on with."""
    steps = latest_steps(run)
    new = [call for call in in_undo_order(wanted) if call.pk not in steps]
    calls = [call for call in new if foresee(call, None).can_undo]
    asker = stop.requested_by or run.owner
    if not calls:
        return None
    if not may_undo(asker, run):
        record(run, "undo.withheld", actor=EXECUTOR, reason="not_allowed", stop_epoch=stop.epoch)
        return None
    request = _plan(run, asker, calls, stop_epoch=stop.epoch)
    doorbell.ring_task("compensation.tasks.undo_next", run.pk)
    return request


def stop_undo(run_id: str, *, by: Person) -> Run:
    """Begin no further step: those not begun are dropped, one that is in flight finishes, and is
    not tried again if it does not work. However often it is asked for.

    Raises WrongState if nobody ever asked for an undo of the run; NotAllowed, NotFound.
    """
    pausepoints.reach(run_id, "undo:stop")
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        asker = require(by, run, allowed=may_undo(by, run))
        requests = UndoRequest.objects.filter(run=run)
        is_due = take_due(run)
        if not is_due and not requests.exists():
            raise WrongState(_("Nothing of this run is being undone."), status=run.status)
        living = requests.filter(steps__state__in=LIVING, stopped_at=None).distinct()
        stopped = list(living.values_list("pk", flat=True))
        if is_due or stopped:
            _stop(run, asker, stopped)
    pausepoints.reach(run_id, "undo:stopped")
    return run


def settle_by_hand(step_id: str, *, by: Person, answer: str, reason: str) -> Compensation:
    """A person settles what did not work: `answer` is UNDONE (they have undone it themselves) or
    LEAVE (it stays as it is). Settled the same way before, it stays so.

    Raises BadInput without a reason; WrongState where there is nothing to settle, or no longer;
    NotAllowed, NotFound.
    """
    if answer not in (UNDONE, LEAVE):
        raise BadInput(_("“answer” is either undone or leave."), field="answer")
    reason = reason.strip()
    if not reason or len(reason) > REASON_LENGTH or "\x00" in reason:
        sentence = _("Say why, in at most %(n)d characters.") % {"n": REASON_LENGTH}
        raise BadInput(sentence, field="reason")
    with transaction.atomic(durable=True):
        run = lock_run(_find(step_id).call.run_id)
        step = _step_under_lock(step_id)
        settler = require(by, run, allowed=may_undo(by, run))
        if step.is_by_hand and step.state == {UNDONE: "undone", LEAVE: "left"}[answer]:
            return step
        _must_be_unsettled(run, step)
        _settle_by_hand(run, step, settler, answer, reason)
    return step


def run_next(run_id: str) -> bool:
    """Carry out the run's next step, if one is due and nobody else is at it. Safe to run twice,
    or late.
    """
    claim = _claim(run_id)
    if claim is None:
        return False
    step = Compensation.objects.select_related("call__run__owner", "request__requested_by").get(
        pk=claim.step_id
    )
    pausepoints.reach(run_id, f"undo:{step.call.number}:started")
    alarm.wind_again(claim.seconds)
    outcome = _attempt(step)
    pausepoints.reach(run_id, f"undo:{step.call.number}:sent")
    _settle(claim, outcome)
    pausepoints.reach(run_id, f"undo:{step.call.number}:settled")
    return True


def sweep() -> int:
    """Ring for every run whose undo was forgotten by a lost doorbell or a dead worker, or is due
    again, with growing pauses for one that does not move; returns how many.
    """
    now = clock().now
    due = Compensation.objects.filter(
        Q(state="planned")
        | Q(state="retrying", next_attempt_at__lte=now)
        | Q(state="running", claim_expires_at__lte=now)
    )
    busy = Compensation.objects.filter(
        Q(state="retrying", next_attempt_at__gt=now) | Q(state="running", claim_expires_at__gt=now)
    )
    runs = due.exclude(call__run__in=busy.values("call__run"))
    found = runs.order_by("call__run").values_list("call__run", "call__run__ledger_seq").distinct()
    ids = [run_id for run_id, seq in found if reminders.is_due(("undo", run_id, seq))]
    for run_id in ids:
        _remind(run_id, "compensation.tasks.undo_next")
    forgotten = StopRequest.objects.filter(undo_is_due=True).order_by("run")
    waiting = forgotten.values_list("run", "run__ledger_seq")
    due_ids = [run_id for run_id, seq in waiting if reminders.is_due(("undo due", run_id, seq))]
    for run_id in due_ids:
        _remind(run_id, "compensation.tasks.undo_after_stop")
    return len(ids) + len(due_ids)


def _remind(run_id: str, task: str) -> None:
    pausepoints.reach(run_id, "sweep:undo")
    doorbell.ring_task(task, run_id)
    pausepoints.reach(run_id, "swept:undo")


def _find(step_id: str) -> Compensation:
    step = Compensation.objects.filter(pk=step_id).select_related("call").first()
    if step is None:
        raise NotFound(step_id=step_id)
    return step


def _chosen(run: Run, call_ids: Iterable[str] | None) -> list[ToolCall]:
    calls = {call.pk: call for call in ToolCall.objects.filter(run=run)}
    wanted = set(calls if call_ids is None else call_ids)
    if wanted - set(calls):
        raise BadInput(_("One of these actions is not of this run."), field="call_ids")
    return in_undo_order(calls[pk] for pk in wanted)


def _plan(
    run: Run, by: User, calls: list[ToolCall], *, stop_epoch: int | None = None
) -> UndoRequest:
    now = clock().now
    request = UndoRequest(run=run, requested_by=by, created_at=now, stop_epoch=stop_epoch)
    sets = add(request)
    for position, call in enumerate(calls, start=1):
        facts = {"request": request, "position": position, "created_at": now}
        sets |= add(Compensation(call=call, **facts))
    record(
        run,
        "undo.requested",
        actor=person(by),
        sets=sets,
        request=request.pk,
        calls=[call.pk for call in calls],
        stop_epoch=stop_epoch,
    )
    return request


# --- Stop of an undo, and a person's word on what did not work -----------------------------------
def _stop(run: Run, by: User, request_ids: list[str]) -> None:
    sets: Sets = {}
    for request in UndoRequest.objects.filter(pk__in=request_ids):
        sets |= save(request, stopped_at=clock().now, stopped_by=by)
    steps = [step for step in living_steps(run) if step.request_id in request_ids]
    begun = [step for step in steps if step.state == "running"]
    actor = person(by)
    record(
        run,
        "undo.stopped",
        actor=actor,
        sets=sets,
        requests=request_ids,
        in_flight=[step.call_id for step in begun],
    )
    for step in steps:
        if step.state != "running":
            _end(run, step, "drop", actor=actor, reason=_why_dropped(step))


def _why_dropped(step: Compensation) -> str:
    """Why a step that is dropped now is not undone, or is not known to be."""
    if step.reason == "no_report":
        return "unknown_when_stopped"
    return "stopped_after_trouble" if step.attempts else "stopped"


def _must_be_unsettled(run: Run, step: Compensation) -> None:
    if not step.needs_person:
        raise WrongState(_("There is nothing to settle here."), state=step.state)
    if latest_steps(run)[step.call_id].pk != step.pk:
        raise WrongState(_("This was asked for anew since: look at that."), state=step.state)


def _settle_by_hand(run: Run, step: Compensation, by: User, answer: str, reason: str) -> None:
    actor, facts = person(by), {"why": reason}
    told = {"settled_by": by, "settled_at": clock().now, "settled_reason": reason}
    if answer == LEAVE:
        _end(run, step, "leave", actor=actor, data=facts, reason=step.reason, **told)
    else:
        _end(run, step, "undo_by_hand", actor=actor, data=facts, reason="", **told)
        mark_undone(run, step.call, actor=actor, by="hand")


# --- Claim: which step is next, and may it still be done -----------------------------------------
def _claim(run_id: str) -> Claim | None:
    """Take the next step; None if there is none, it is not due, or somebody is at one."""
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        steps = living_steps(run)
        now = clock().now
        for step in steps:
            if step.state == "running":
                if step.claim_expires_at is not None and step.claim_expires_at > now:
                    return None
                _lapse(run, step, now)
        for step in (step for step in steps if step.is_living):
            if step.next_attempt_at is not None and step.next_attempt_at > now:
                return None
            reason = refusal(run, step)
            if not reason:
                return _start(run, step, now)
            _end(run, step, "give_up", reason=reason)
        return None


def _start(run: Run, step: Compensation, now: datetime) -> Claim:
    timeout = effective(step.call.tool).timeout
    ttl = timedelta(seconds=max(settings.CLAIM_TTL, timeout * _answers(step.call)))
    token = secrets.token_hex(16)
    attempt = step.attempts + 1
    _move(
        run,
        step,
        "start",
        data={"attempt": attempt},
        attempts=attempt,
        next_attempt_at=None,
        claim_token=token,
        claim_expires_at=now + ttl,
    )
    return Claim(run.pk, step.pk, token, ttl.total_seconds())


def _answers(call: ToolCall) -> int:
    """How many answers of the outside system the undo of this call may need."""
    items = (call.receipt or {}).get("items")
    return ANSWERS_PER_UNDO + ANSWERS_PER_ITEM * (len(items) if isinstance(items, dict) else 0)


def _lapse(run: Run, step: Compensation, now: datetime) -> None:
    """Whoever was at it never reported: dead, most likely. The tools take the same undo twice."""
    if step.request.stopped_at:
        _end(run, step, "drop", reason="unknown_when_stopped")
    elif step.attempts >= ATTEMPT_LIMIT:
        _end(run, step, "give_up", reason="no_report")
    else:
        _move(run, step, "lapse", reason="no_report", next_attempt_at=now)


# --- Attempt: outside of every transaction -------------------------------------------------------
def _attempt(step: Compensation) -> UndoResult | Trouble:
    """Have the tool undo the call, in the name of the person who asked."""
    call, asker = step.call, step.request.requested_by
    registered = registry.get(call.tool)
    assert registered is not None  # the gate has just seen it, in this process
    impl: Any = registered.impl
    name = asker.get_full_name() or asker.get_username()
    ctx = replace(context_of(call), actor=name)
    try:
        result: UndoResult = impl.compensate(ctx, Receipt(call.receipt or {}, call.response))
    except Exception as error:  # noqa: BLE001  (whatever went wrong may go right later)
        log.warning("undo.trouble", step_id=step.pk, error=repr(error))
        return Trouble(in_words(error))
    return result


# --- Settle: what became of the attempt ----------------------------------------------------------
def _settle(claim: Claim, outcome: UndoResult | Trouble) -> None:
    """Record the outcome. That it IS undone counts however late; the rest only from whoever
    holds the claim.
    """
    with transaction.atomic(durable=True):
        run = lock_run(claim.run_id)
        step = _step_under_lock(claim.step_id)
        if isinstance(outcome, UndoReceipt):
            _land(run, step, outcome)
        elif step.state != "running" or step.claim_token != claim.token:
            record(run, "undo.repeated", actor=EXECUTOR, call=step.call, state=step.state)
        elif isinstance(outcome, Changed):
            _end(run, step, "find_changed", reason="changed", detail=outcome.what)
        elif isinstance(outcome, CannotUndo):
            _end(run, step, "find_impossible", reason="impossible", detail=outcome.why)
        elif step.request.stopped_at:
            reason, detail = "stopped_after_trouble", outcome.detail
            _end(run, step, "drop", reason=reason, detail=detail)
        elif step.attempts >= ATTEMPT_LIMIT:
            _end(run, step, "give_up", reason="too_many_attempts", detail=outcome.detail)
        else:
            _postpone(run, step, outcome)
        if living_steps(run):
            doorbell.ring_task("compensation.tasks.undo_next", run.pk)


def _step_under_lock(step_id: str) -> Compensation:
    return Compensation.objects.select_related("call", "request__requested_by").get(pk=step_id)


def _land(run: Run, step: Compensation, receipt: UndoReceipt) -> None:
    """Undone. A late receipt lands the step that is living now: there is one undo per call."""
    if step.call.undo_state == ToolCall.UndoState.UNDONE:
        record(run, "undo.repeated", actor=EXECUTOR, call=step.call, state=step.state)
        return
    living = Compensation.objects.filter(call=step.call, state__in=LIVING).first()
    target = living or step
    _end(run, target, "land", receipt=receipt.data, note=receipt.note, reason="", detail="")
    mark_undone(run, step.call, actor=EXECUTOR)


def _postpone(run: Run, step: Compensation, trouble: Trouble) -> None:
    pause = min(2 ** (step.attempts - 1), LONGEST_PAUSE)
    _move(
        run,
        step,
        "postpone",
        data={"attempt": step.attempts, "again_after": pause},
        reason="trouble",
        detail=trouble.detail,
        next_attempt_at=clock().now + timedelta(seconds=pause),
    )


def _end(
    run: Run,
    step: Compensation,
    verb: str,
    *,
    reason: str,
    data: dict[str, Any] | None = None,
    **fields: Any,
) -> None:
    data = ({"reason": reason} if reason else {}) | (data or {})
    ended: dict[str, Any] = {"ended_at": clock().now, "next_attempt_at": None}
    _move(run, step, verb, data=data, reason=reason, **ended, **fields)


def _move(
    run: Run,
    step: Compensation,
    verb: str,
    *,
    actor: str = EXECUTOR,
    data: dict[str, Any] | None = None,
    **fields: Any,
) -> None:
    """Take one step of the locked run through one transition, save it, record it."""
    sets = change(step, COMPENSATION, verb, fields)
    event = COMPENSATION.verbs[verb].event
    facts = {"undo": step.pk} | (data or {})
    record(run, event, actor=actor, call=step.call, sets=sets, **facts)
