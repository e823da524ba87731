"""Doorbells: Celery messages and channel-layer messages, rung after a commit.

A doorbell carries no truth. It may ring twice, late or never; whoever hears it reads the
database, and the sweeper finds what was never rung. So a bell that cannot be rung is logged and
forgotten, and ringing never takes longer than `RING_LIMIT` seconds.
"""

import asyncio
import functools
from dataclasses import dataclass
from typing import Any

import structlog
from channels.layers import get_channel_layer
from django.db import connection, transaction
from kombu.connection import Connection
from kombu.pools import producers

from agentruns import background, pausepoints
from agentruns.celery import app

RING_LIMIT = 1.0

log = structlog.get_logger(__name__)


def run_group(run_id: str) -> str:
    """The channel group of everybody who watches a run."""
    return f"run.{run_id}"


def driver_group(run_id: str) -> str:
    """The channel group of the worker that streams a run's model."""
    return f"driver.{run_id}"


def ring_task(name: str, *args: Any, after: float = 0.0) -> None:
    """Once the transaction is committed, send the Celery task `name` (ids and epochs only), to be
    done `after` so many seconds at the earliest.
    """
    transaction.on_commit(lambda: _send_task(name, args, after), robust=True)


def ring_watchers(run_id: str) -> None:
    """Once the transaction is committed, tell every open page of the run to look again."""
    _ring_group(run_group(run_id), {"type": "run.changed"})


def ring_driver(run_id: str) -> None:
    """Once the transaction is committed, tell the driver that the run was stopped."""
    _ring_group(driver_group(run_id), {"type": "driver.stop"})


@dataclass
class Bells:
    """The groups that one transaction rings after its commit: each once, all at the same time,
    so that a Redis which hangs costs whoever waits for the answer `RING_LIMIT` seconds, once.
    """

    messages: dict[str, dict[str, Any]]

    def __call__(self) -> None:
        if pausepoints.loses_bell(" ".join(self.messages)):
            return
        try:
            background.run(_send_to_groups(self.messages), limit=RING_LIMIT)
        except Exception as error:  # noqa: BLE001  (pages and drivers look again by themselves)
            log.warning("doorbell.lost", groups=list(self.messages), error=repr(error))


def _ring_group(group: str, message: dict[str, Any]) -> None:
    for entry in connection.run_on_commit:
        hook = entry[1]
        if isinstance(hook, Bells):
            hook.messages[group] = message
            return
    transaction.on_commit(Bells({group: message}), robust=True)


@functools.cache
def _bell_connection() -> Connection:
    """The broker, with less patience than the workers have: somebody waits for the answer.

    The Redis client tries four times by itself before it gives up.
    """
    each = RING_LIMIT / 4
    patience = {"socket_timeout": each, "socket_connect_timeout": each}
    options = app.conf.broker_transport_options | patience
    return Connection(  # type: ignore[no-untyped-call]
        app.conf.broker_url, transport_options=options
    )


def _send_task(name: str, args: tuple[Any, ...], after: float) -> None:
    if pausepoints.loses_bell(name):
        return
    try:
        with producers[_bell_connection()].acquire(block=True, timeout=RING_LIMIT) as producer:
            app.send_task(
                name, args=list(args), countdown=after or None, producer=producer, retry=False
            )
    except Exception as error:  # noqa: BLE001  (whatever the broker raises, the sweeper rings again)
        log.warning("doorbell.lost", task=name, error=repr(error))


async def _send_to_groups(messages: dict[str, dict[str, Any]]) -> None:
    layer = get_channel_layer()
    if layer is not None:
        async with asyncio.TaskGroup() as sending:
            for group, message in messages.items():
                sending.create_task(layer.group_send(group, message))
