"""Celery tasks: thin doors. Each re-reads the database; each may run twice, late or never."""

import asyncio

from celery import shared_task
from structlog.contextvars import bind_contextvars

from agentruns import pausepoints
from agentruns.planner.driver import drive_turn
from agentruns.protocol.execute import execute_call, look_up_call
from agentruns.protocol.heads import chain_heads as chain_heads_once
from agentruns.protocol.lease import take_lease
from agentruns.protocol.leftovers import drop_leftovers as drop_leftovers_once
from agentruns.protocol.leftovers import set_drafts_aside
from agentruns.protocol.sweep import sweep as sweep_once


@shared_task(name="agentruns.tasks.think")
def think(run_id: str, epoch: int) -> None:
    """Stream one turn of the run's model."""
    bind_contextvars(run_id=run_id)
    lease = take_lease(run_id, epoch=epoch)
    if lease is not None:
        pausepoints.reach(run_id, f"think:{lease.turn}:leased")
        asyncio.run(drive_turn(lease))
        pausepoints.reach(run_id, f"think:{lease.turn}:finished")


@shared_task(name="agentruns.tasks.act")
def act(call_id: str, epoch: int) -> None:
    """Do one call."""
    bind_contextvars(call_id=call_id)
    execute_call(call_id, epoch=epoch)


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
