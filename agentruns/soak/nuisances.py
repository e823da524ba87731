"""Small trouble: messages that come twice or never, and an outside world that misbehaves."""

from pathlib import Path

import redis
from django.conf import settings

from agentruns import doorbell
from agentruns.models import ToolCall
from agentruns.soak import plan
from agentruns.soak.people import NOTHING, People
from agentruns.soak.plan import Nuisance
from tools.world import faults
from tools.world.faults import Faults

QUEUES = ("think", "act", "control")


class Nuisances:
    """The nuisances of one soak, each when its time has come."""

    def __init__(self, seed: int, people: People, world_dir: Path) -> None:
        self._coming = plan.nuisances(seed)
        self._next = next(self._coming)
        self._people = people
        self._faults = Faults(world_dir)
        self._redis = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1)

    def do_what_is_due(self, elapsed: float, run_ids: list[str]) -> None:
        """`run_ids`: the runs that are under way."""
        while self._next.at <= elapsed:
            self._people.do(self._nuisance, self._next, run_ids)
            self._next = next(self._coming)

    def waiting(self) -> dict[str, int]:
        """How many messages wait in each queue; {} while the broker is away."""
        try:
            return {queue: self._redis.llen(queue) for queue in QUEUES}
        except redis.RedisError:
            return {}

    def end(self) -> None:
        """The world does as it should from now on."""
        self._faults.clear()

    def _nuisance(self, nuisance: Nuisance, run_ids: list[str]) -> object:
        if nuisance.kind == "again":
            if run_ids:
                self._send_again(run_ids[int(nuisance.pick * len(run_ids))])
        elif nuisance.kind == "silence":
            self._lose_message(QUEUES[int(nuisance.pick * len(QUEUES))])
        else:
            raw = {"service": nuisance.service, "mode": nuisance.kind}
            self._faults.add(faults.parse(raw | {"seconds": nuisance.seconds}))
            self._people.tally.add("faults of the world")
        return NOTHING  # that a person did

    def _send_again(self, run_id: str) -> None:
        """Tasks of one run under way, as if the broker had not noticed that they were done."""
        calls = ToolCall.objects.filter(run=run_id).select_related("run").order_by("-number")
        call = calls.first()
        if call is None:
            return
        tasks = [
            ("agentruns.tasks.act", (call.pk, call.run.epoch)),
            ("agentruns.tasks.look_up", (call.pk,)),
            ("agentruns.tasks.think", (run_id, call.epoch)),
            ("compensation.tasks.undo_next", (run_id,)),
        ]
        for name, args in tasks:
            doorbell.ring_task(name, *args)
        self._people.tally.add("messages sent again", len(tasks))

    def _lose_message(self, queue: str) -> None:
        try:
            if self._redis.rpop(queue) is not None:
                self._people.tally.add("messages lost")
        except redis.RedisError:
            return  # the broker is away, and has lost all of them
