"""Celery tasks: thin doors. Each re-reads the database; each may run twice, late or never."""

import asyncio

from celery import shared_task
from structlog.contextvars import bind_contextvars

from agentruns import doorbell, pausepoints
from agentruns.planner.driver import drive_turn
from agentruns.protocol.execute import execute_fairly, look_up_call
from agentruns.protocol.fair import next_turn
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
        if due := next_turn():
            doorbell.ring_task("agentruns.tasks.think", *due)


@shared_task(name="agentruns.tasks.act")
def act(call_id: str, epoch: int) -> None:
    """Do one call: that of the message, or first one whose owner holds fewer places."""
    bind_contextvars(call_id=call_id)
    execute_fairly(call_id, epoch=epoch)


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
