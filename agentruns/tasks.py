"""Celery tasks: thin doors. Each re-reads the database; each may run twice, late or never."""

import asyncio

from celery import shared_task
from structlog.contextvars import bind_contextvars

from agentruns import doorbell, pausepoints
from agentruns.planner.driver import drive_turn
from agentruns.protocol import fair
from agentruns.protocol.execute import execute_call, look_up_call
from agentruns.protocol.heads import chain_heads as chain_heads_once
from agentruns.protocol.lease import take_fair_lease
from agentruns.protocol.leftovers import drop_leftovers as drop_leftovers_once
from agentruns.protocol.leftovers import set_drafts_aside
from agentruns.protocol.sweep import sweep as sweep_once


@shared_task(name="agentruns.tasks.think")
def think(run_id: str, epoch: int) -> None:
    """Stream one turn of a run's model."""
    lease = take_fair_lease(run_id, epoch=epoch)
    if lease is not None:
        bind_contextvars(run_id=lease.run_id)
        pausepoints.reach(lease.run_id, f"think:{lease.turn}:leased")
        asyncio.run(drive_turn(lease))
        pausepoints.reach(lease.run_id, f"think:{lease.turn}:finished")
        if due := fair.next_turn():
            doorbell.ring_task("agentruns.tasks.think", *due)


@shared_task(name="agentruns.tasks.act")
def act(call_id: str, epoch: int, *, is_fair: bool = True) -> bool:
    """Do one call; if `is_fair`, first one whose owner holds fewer places, and ring for this one
    again. Returns whether anything was done.
    """
    before = fair.calls_before(call_id) if is_fair else []
    for due in before:
        if _act_now(*due):
            doorbell.ring_task("agentruns.tasks.act", call_id, epoch)
            return True
    if before:
        return _act_now(call_id, epoch)
    bind_contextvars(call_id=call_id)
    is_done = execute_call(call_id, epoch=epoch)
    if is_done and (due_next := fair.next_call()):
        doorbell.ring_task("agentruns.tasks.act", *due_next)
    return is_done


def _act_now(call_id: str, epoch: int) -> bool:
    """As a task of its own: what looks out for tasks that hang has to see which call it is."""
    done = act.apply(args=(call_id, epoch), kwargs={"is_fair": False}, throw=True)
    return bool(done.result)


@shared_task(name="agentruns.tasks.look_up")
def look_up(call_id: str) -> None:
    """Find out what became of one call in doubt."""
    bind_contextvars(call_id=call_id)
    look_up_call(call_id)


@shared_task(name="agentruns.tasks.drop_leftovers")
def drop_leftovers() -> None:
    """Drop the drafts out there that no call will use any more."""
    set_drafts_aside()
    drop_leftovers_once()


@shared_task(name="agentruns.tasks.sweep")
def sweep() -> None:
    """Settle whatever a lost doorbell, a dead worker or a passed deadline left lying."""
    sweep_once()


@shared_task(name="agentruns.tasks.chain_heads")
def chain_heads() -> None:
    """Add the newest events of all runs to the chain of heads."""
    chain_heads_once()
