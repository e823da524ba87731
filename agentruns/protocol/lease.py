"""The lease: at most one driver streams a run's model, and everybody can tell which (protocol §4).

Guarantees that a driver which lost its lease, or whose run was stopped, can write nothing more,
that its attempt is on record, and that a lease nobody renews is taken away.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from agentruns import doorbell
from agentruns.models import Output, Run, StopRequest, ToolCall
from agentruns.protocol import checkpoints
from agentruns.protocol.budget import enforce_budget
from agentruns.protocol.drain import begin_drain
from agentruns.protocol.fair import may_think, turns_before
from agentruns.protocol.heads import CUT_BACK, is_whole
from agentruns.protocol.ledger import (
    DRIVER,
    SWEEPER,
    clock,
    lock_run,
    lock_run_if_free,
    move_call,
    move_output,
    move_run,
    open_calls,
    record,
    save,
)
from agentruns.states import NOT_YET_IN_FLIGHT

LOST_TURNS_LIMIT = 3


@dataclass(frozen=True)
class Lease:
    """What a driver holds while it streams one turn. `holder` is fresh for every claim."""

    run_id: str
    epoch: int
    holder: str
    turn: int
    output_id: int


@dataclass(frozen=True)
class Fragment:
    """What a driver has so far: the text, and the tokens as the provider counts them."""

    text: str = ""
    tokens_in: int = 0
    tokens_out: int = 0

    def as_fields(self) -> dict[str, Any]:
        """The columns of an Output that it fills."""
        return {
            "text": self.text,
            "offset": len(self.text),
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
        }


def take_lease(run_id: str, *, epoch: int) -> Lease | None:
    """Begin the run's next turn, or return None if there is nothing to do, somebody does it, the
    run has used up its budget, or its owner holds as many places as one may.
    """
    if enforce_budget(run_id):
        return None
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        if run.epoch != epoch or run.status not in ("queued", "running") or run.lease_holder:
            return None
        if open_calls(run):
            return None
        if not may_think(run):
            return None
        now = clock().now
        if not is_whole(run):
            move_run(run, "fail", actor=DRIVER, failure=CUT_BACK, ended_at=now)
            return None
        if run.turn >= settings.TURN_LIMIT:
            move_run(run, "fail", actor=DRIVER, failure="turn_limit", ended_at=now)
            return None
        if run.status == "queued":
            move_run(run, "begin", actor=DRIVER, started_at=run.started_at or now)
        holder = secrets.token_hex(16)
        sets = save(run, turn=run.turn + 1, lease_holder=holder, lease_expires_at=_expiry(now))
        checkpoints.before_turn(run, now)
        output = Output.objects.create(run=run, turn=run.turn, epoch=run.epoch, started_at=now)
        record(run, "turn.started", actor=DRIVER, sets=sets, turn=run.turn, holder=holder)
        return Lease(run.pk, run.epoch, holder, run.turn, output.pk)


def take_fair_lease(run_id: str, *, epoch: int) -> Lease | None:
    """The same, or first for a run whose owner holds fewer places. Then this one is rung for again:
    its turn comes.
    """
    for due_id, due_epoch in turns_before(run_id):
        if lease := take_lease(due_id, epoch=due_epoch):
            doorbell.ring_task("agentruns.tasks.think", run_id, epoch)
            return lease
    return take_lease(run_id, epoch=epoch)


def renew_lease(lease: Lease, fragment: Fragment) -> bool:
    """Extend the lease and keep the text so far; False once the run is no longer ours to drive.

    A run that has used up its budget by this text is stopped here; the next renewal tells.
    """
    with transaction.atomic(durable=True):
        run = lock_run(lease.run_id)
        if not is_ours(run, lease):
            return False
        save(run, lease_expires_at=_expiry(clock().now))
        Output.objects.filter(pk=lease.output_id).update(**fragment.as_fields())
    if run.limits:
        enforce_budget(lease.run_id)
    return True


def give_back_lease(lease: Lease, fragment: Fragment, finish_reason: str = "") -> bool:
    """The driver of a stopped run has closed the model's stream: keep its fragment, drain on.
    `finish_reason`: of an answer that had ended, with all that it asked for on record.

    Not fenced by the epoch, which Stop has moved, but by the holder: this is the driver's word
    that nothing streams any more. False, and recorded, if the lease was taken away meanwhile.
    """
    with transaction.atomic(durable=True):
        run = lock_run(lease.run_id)
        if run.lease_holder != lease.holder:
            refuse_late(run, lease, "give_back_lease")
            return False
        now = clock().now
        if finish_reason:
            finish_output(run, lease.output_id, now, fragment, finish_reason)
        else:
            cut_output(run, lease.output_id, now, fragment, "stopped")
        save(run, lease_holder="", lease_expires_at=None)
        stop = StopRequest.objects.get(run=run, epoch=run.epoch)
        sets = save(stop, generation_stopped_at=now)
        about: dict[str, Any] = {"tokens_out": fragment.tokens_out}
        record(run, "generation.stopped", actor=DRIVER, sets=sets, **about)
        begin_drain(run)
        return True


def take_away_lease(run_id: str) -> bool:
    """Take the lease of a driver that has not renewed it; the run goes on, or drains."""
    with transaction.atomic(durable=True):
        run = lock_run_if_free(run_id)
        now = clock().now
        if run is None or not run.lease_holder:
            return False
        if run.lease_expires_at is None or run.lease_expires_at > now:
            return False
        for output in Output.objects.filter(run=run, status="streaming"):
            cut_output(run, output.pk, now, None, "worker_lost")
        holder = run.lease_holder
        # A new epoch, so that the lost driver stays out.
        epoch = run.epoch + 1 if run.is_active else run.epoch
        sets = save(run, lease_holder="", lease_expires_at=None, epoch=epoch)
        record(run, "lease.taken_away", actor=SWEEPER, sets=sets, holder=holder)
        if run.is_stopping:
            begin_drain(run)
        elif run.is_active:
            _start_turn_over(run, now)
        return True


def is_ours(run: Run, lease: Lease) -> bool:
    """Whether the locked run is still this driver's to drive: also while it is paused, since
    what the model says then is kept, and only nothing comes of it.
    """
    return run.is_active and run.epoch == lease.epoch and run.lease_holder == lease.holder


def refuse_late(run: Run, lease: Lease, what: str) -> None:
    """Record a write that came too late; how many there are is a metric."""
    record(
        run, "write.rejected_late", actor=DRIVER, what=what, epoch=lease.epoch, holder=lease.holder
    )


def finish_output(
    run: Run, output_id: int, now: datetime, fragment: Fragment, finish_reason: str
) -> None:
    """Keep the answer of a turn, which is complete."""
    output = Output.objects.get(pk=output_id)
    fields = fragment.as_fields()
    move_output(run, output, "finish", finish_reason=finish_reason, ended_at=now, **fields)


def cut_output(
    run: Run, output_id: int, now: datetime, fragment: Fragment | None, why: str
) -> None:
    """Keep the fragment of a turn that did not end well, marked incomplete."""
    output = Output.objects.get(pk=output_id)
    fields = fragment.as_fields() if fragment else {}
    move_output(run, output, "cut", data={"why": why}, finish_reason=why, ended_at=now, **fields)


def drop_turn(run: Run, turn: int, now: datetime, reason: str, *, actor: str) -> None:
    """Void every call of a turn that has not passed the gate: its answer never ended cleanly."""
    for call in ToolCall.objects.filter(run=run, turn=turn, state__in=NOT_YET_IN_FLIGHT):
        move_call(run, call, "void", actor=actor, reason=reason, ended_at=now)


def _start_turn_over(run: Run, now: datetime) -> None:
    """The same turn again, a few times."""
    drop_turn(run, run.turn, now, "worker_lost", actor=SWEEPER)
    recent = Output.objects.filter(run=run).order_by("-turn")[:LOST_TURNS_LIMIT]
    if [o.finish_reason for o in recent] == ["worker_lost"] * LOST_TURNS_LIMIT:
        move_run(run, "fail", actor=SWEEPER, failure="worker_lost", ended_at=now)
    elif run.status == "running" and not open_calls(run):
        doorbell.ring_task("agentruns.tasks.think", run.pk, run.epoch)


def _expiry(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.LEASE_TTL)
