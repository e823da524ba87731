"""(c) From the doorbell of Stop until the connection to the model's provider is closed.

Real workers, the demo world's provider; the end is what the provider recorded by itself. The clock
starts at `no_new_effect_at`, right before the commit after which the bell is rung: a little early.
"""

import time
from typing import Any

from django.conf import settings

from agentruns.models import Agent, StopRequest
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from tests.bench.play import Player
from tools.world.provider_record import ModelRequest, model_requests

SCENARIO = "inbox"
TOKENS = 5  # that the model has written when Stop comes
PATIENCE = 30.0
LOOK_EVERY = 0.01


def measure(*, stops: int) -> dict[str, Any]:
    """Seconds of every one, and how many answers had ended by themselves before."""
    player = Player()
    times: list[float] = []
    too_late = 0
    for _ in range(stops):
        took = _closing(player)
        too_late += took is None
        times += [] if took is None else [took]
    return {"times": times, "too_late": too_late}


def _closing(player: Player) -> float | None:
    agent = Agent.objects.get(slug=SCENARIO)
    run = start_run(owner=player.owner, agent=agent, goal=agent.example_goal)
    _request(run.pk, lambda each: len(each.token_times) >= TOKENS)
    stop: StopRequest = request_stop(run.pk, by=player.owner)
    ended = _request(run.pk, lambda each: each.ended_at is not None)
    if ended.end != "closed_by_client" or ended.ended_at is None:
        return None
    return (ended.ended_at - stop.no_new_effect_at).total_seconds()


def _request(run_id: str, holds: Any) -> ModelRequest:
    """The run's request at the provider, once something holds of it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for each in model_requests(settings.WORLD_DIR):
            if each.run == run_id and holds(each):
                return each
        time.sleep(LOOK_EVERY)
    raise TimeoutError("the worker or the provider does not get on")
