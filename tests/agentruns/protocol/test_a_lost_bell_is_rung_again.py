"""Doorbells carry no truth: whatever was never rung, the sweeper finds. Real broker, real queue."""

from datetime import timedelta

import pytest
import redis
from django.conf import settings

from agentruns.protocol import sweep as sweeping
from agentruns.reminders import reminders
from tests.agentruns.steps import Steps, pass_time


def waiting(queue: str) -> int:
    """How many messages the broker has for a queue."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        return int(client.llen(queue))  # type: ignore[arg-type]


def test_a_run_that_nobody_was_told_of_is_told_again(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.start()
    before = waiting("think")
    assert steps.sweep()["silent"] == 0, "the bell has its time first"

    _nothing_is_quiet(monkeypatch)
    assert steps.sweep()["silent"] == 1

    assert waiting("think") == before + 1


def test_a_call_whose_message_was_lost_is_rung_again(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.running("test.book")
    before = waiting("act")
    _nothing_is_quiet(monkeypatch)

    steps.sweep()

    assert waiting("act") == before + 1


def test_a_call_that_somebody_has_is_left_alone(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run, (call,) = steps.running("test.book")
    steps.claim(call)
    _nothing_is_quiet(monkeypatch)

    assert steps.sweep()["silent"] == 0
    pass_time(call)
    assert steps.sweep()["silent"] == 1


def test_what_does_not_move_is_rung_for_with_growing_pauses(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that is behind is not put further behind by reminders of what is in it."""
    seconds = 1000.0
    monkeypatch.setattr(reminders, "clock", lambda: seconds)
    run = steps.start()
    _nothing_is_quiet(monkeypatch)
    rung_at = []
    for _second in range(100):
        if steps.sweep()["silent"]:
            rung_at.append(round(seconds - 1000))
        seconds += 1

    assert rung_at == [0, 2, 6, 14, 30, 60, 90]
    steps.think(run)
    pass_time(run)
    assert steps.sweep()["leases"] == 1
    assert steps.sweep()["silent"] == 1, "something has happened: it is another matter"


def _nothing_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "QUIET", timedelta(0))
