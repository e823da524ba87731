"""Doorbells carry no truth: whatever was never rung, the sweeper finds. Real broker, real queue."""

import json
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.conf import settings

from agentruns.protocol import sweep as sweeping
from agentruns.reminders import reminders
from tests.agentruns.steps import Steps, pass_time


def waiting(queue: str, about: str) -> int:
    """How many messages the broker has for a queue, about one run or call."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        messages: Any = client.lrange(queue, 0, -1)
    return sum(about in json.loads(each)["headers"]["argsrepr"] for each in messages)


def test_a_run_that_nobody_was_told_of_is_told_again(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = steps.start()
    assert waiting("think", run.pk) == 0
    assert steps.sweep()["silent"] == 0, "the bell has its time first"

    _nothing_is_quiet(monkeypatch)
    assert steps.sweep()["silent"] == 1

    assert waiting("think", run.pk) == 1


def test_a_call_whose_message_was_lost_is_rung_again(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run, (call,) = steps.running("test.book")
    before = waiting("act", call.pk)
    _nothing_is_quiet(monkeypatch)

    steps.sweep()

    assert waiting("act", call.pk) == before + 1


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
