"""Runs that are really active, beside what is measured: `python -m tests.bench.job load …`.

Each is streaming: its driver renews the lease and keeps the text every `RENEW_EVERY` seconds, and
every `CALL_EVERY` seconds its model asks for a read, which goes out at once, in mid-stream. All by
the protocol's own verbs, in a few threads. Says `ready` once every run is active, goes on until
stdin ends, and answers with how much it did.
"""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from agentruns.protocol.execute import execute_call
from agentruns.protocol.lease import Fragment, Lease, renew_lease
from tests.bench.play import READ, Player

RENEW_EVERY = 5.0
CALL_EVERY = 25.0
THREADS = 4


def measure(*, runs: int) -> dict[str, float]:
    """How many renewals and calls there were, in how many seconds."""
    ended = threading.Event()
    with ThreadPoolExecutor(THREADS) as pool:
        leases = list(pool.map(lambda _: _picked_up(), range(runs)))
        workers = [
            pool.submit(_keep_active, leases[number::THREADS], ended) for number in range(THREADS)
        ]
        began = time.monotonic()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()
        ended.set()
        done = [worker.result() for worker in workers]
        seconds = time.monotonic() - began
    renewals, calls = (sum(column) for column in zip(*done, strict=True))
    return {"seconds": seconds, "renewals": renewals, "calls": calls}


def _picked_up() -> Lease:
    try:
        return Player().pick_up()
    finally:
        connection.close()


def _keep_active(leases: list[Lease], ended: threading.Event) -> tuple[int, int]:
    """Renew each in its turn, evenly spread over time; one renewal in a few comes with a call."""
    player = Player()
    renewals = calls = 0
    began = time.monotonic()
    while leases:
        pause = began + (renewals + 1) * RENEW_EVERY / len(leases) - time.monotonic()
        if ended.wait(max(pause, 0)):
            break
        round_, place = divmod(renewals, len(leases))
        lease = leases[place]
        assert renew_lease(lease, Fragment("word " * (20 + round_), 40, 20 + round_))
        renewals += 1
        if (round_ + place) % round(CALL_EVERY / RENEW_EVERY) == 0:
            execute_call(player.propose(lease, READ).pk, epoch=lease.epoch)
            calls += 1
    connection.close()
    return renewals, calls
