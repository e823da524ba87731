"""Undo against the real world."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db.models import F

from agentruns import pausepoints
from agentruns.models import Run
from compensation import saga
from compensation.models import Compensation
from tests.pausing import Pauses, pausing
from tests.tools.conftest import RunningWorld, _world_process, world
from tools.world.record import Effect, effects

__all__ = ["_world_process", "world"]

Standing = Callable[[Run], list[str]]


def undo_all(run: Run) -> None:
    """What the workers do, until nothing is due now."""
    while saga.run_next(run.pk):
        pass


def steps(run: Run) -> list[Compensation]:
    """Every step of the run, in the order in which they were planned."""
    found = Compensation.objects.filter(call__run=run).select_related("call")
    return list(found.order_by("created_at", "position"))


def step(run: Run, number: int = 1) -> Compensation:
    """The latest step of the call of that number."""
    return [item for item in steps(run) if item.call.number == number][-1]


def let_pauses_pass(run: Run) -> None:
    """As if an hour had gone by."""
    hour = timedelta(hours=1)
    mine = Compensation.objects.filter(call__run=run)
    mine.filter(state="retrying").update(next_attempt_at=F("next_attempt_at") - hour)
    mine.filter(state="running").update(claim_expires_at=F("claim_expires_at") - hour)


def in_world(world: RunningWorld, run: Run) -> list[Effect]:
    """What the world recorded of this run, in the order of the run's calls."""
    keys = list(run.calls.order_by("number").values_list("request_id", flat=True))
    mine = [effect for effect in effects(world.folder) if effect.request_id in keys]
    return sorted(mine, key=lambda effect: keys.index(effect.request_id))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pauses]:
    """Hold threads at pause points."""
    with pausing(monkeypatch) as installed:
        yield installed


class WorkerDied(BaseException):
    """As a kill: no `except Exception` sees it, and nothing after it is done."""


@pytest.fixture
def die_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have the worker die the first time it reaches that point."""

    def arm(point: str) -> None:
        def handler(run_id: str, reached: str) -> None:
            if reached == point:
                monkeypatch.setattr(pausepoints, "handler", None)
                raise WorkerDied(point)

        monkeypatch.setattr(pausepoints, "handler", handler)

    return arm
