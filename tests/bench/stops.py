"""(b) How long Stop takes, and until nothing new can start, while other runs are active.

Each stopped run is streaming, with one effect written down that waits for the answer's end.
"""

import http.client
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from knox.models import AuthToken

from agentruns.models import StopRequest
from agentruns.protocol.lease import Lease
from agentruns.protocol.stop import request_stop
from tests.bench.play import EFFECT, Player

WARM_UP = 3  # stops, not counted

Times = dict[str, list[float]]


def measure(*, active: int, stops: int, over_http: int, port: int) -> dict[str, Any]:
    """Seconds of every stop, called as the page does and over HTTP; and what the load did."""
    times: Times = defaultdict(list)
    player = Player()
    with others(active) as load:
        for number in range(WARM_UP + stops):
            answer, shut = _stop(player)
            if number >= WARM_UP:
                times["answer"].append(answer)
                times["no_new_effect"].append(shut)
        web = _Web(port, player) if over_http else None
        for number in range(WARM_UP + over_http if web else 0):
            took = web.stop(_one(player)) if web else 0.0
            times["http"] += [took] if number >= WARM_UP else []
    return {"times": times, "load": load}


@contextmanager
def others(active: int) -> Iterator[dict[str, float]]:
    """So many runs are active meanwhile; afterwards the dict says what they did."""
    argv = [sys.executable, "-m", "tests.bench.job", "load", json.dumps({"runs": active})]
    done: dict[str, float] = {}
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield done
        said, _ = process.communicate()
    done |= json.loads(said.splitlines()[-1])


def _one(player: Player) -> Lease:
    lease = player.pick_up()
    player.propose(lease, EFFECT)
    return lease


def _stop(player: Player) -> tuple[float, float]:
    lease = _one(player)
    began = time.perf_counter()
    stop = request_stop(lease.run_id, by=player.owner)
    took = time.perf_counter() - began
    assert stop.won_by == StopRequest.WonBy.STOP
    return took, (stop.no_new_effect_at - stop.requested_at).total_seconds()


class _Web:
    """The API, over one connection that is kept."""

    def __init__(self, port: int, player: Player) -> None:
        _, token = AuthToken.objects.create(player.owner)
        self._headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def stop(self, lease: Lease) -> float:
        began = time.perf_counter()
        path = f"/api/v1/runs/{lease.run_id}/cancel"
        self._connection.request("POST", path, body="{}", headers=self._headers)
        answer = self._connection.getresponse()
        answer.read()
        took = time.perf_counter() - began
        assert answer.status == http.HTTPStatus.ACCEPTED, answer.status
        return took
