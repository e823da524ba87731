"""A system that cannot keep up is not kept from it by its own reminders. Real broker."""

from collections.abc import Iterator

import pytest
import redis
from django.conf import settings

from agentruns.doorbell import CROWD, reminding, ring_task

TASK, QUEUE = "agentruns.tasks.look_up", "act"


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.delete(QUEUE)
        yield client
        client.delete(QUEUE)


@pytest.mark.django_db(transaction=True)
def test_a_reminder_goes_where_few_are_waiting(broker: redis.Redis) -> None:
    with reminding():
        ring_task(TASK, "call_1")
    assert broker.llen(QUEUE) == 1


@pytest.mark.django_db(transaction=True)
def test_a_crowd_gets_no_reminders_and_every_first_ring(broker: redis.Redis) -> None:
    broker.lpush(QUEUE, *["somebody's"] * (CROWD + 1))
    with reminding():
        ring_task(TASK, "call_1")
    assert broker.llen(QUEUE) == CROWD + 1
    ring_task(TASK, "call_1")
    assert broker.llen(QUEUE) == CROWD + 2
