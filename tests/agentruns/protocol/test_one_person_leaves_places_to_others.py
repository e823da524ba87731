"""A6: however many runs one person has, others are served: room, and fair turns."""

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import redis
from django.conf import settings as given
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from agentruns.errors import TooManyRuns
from agentruns.models import Run
from agentruns.protocol import fair, room
from agentruns.protocol.lease import Lease, take_fair_lease, take_lease
from agentruns.protocol.resume import resume_run
from agentruns.tasks import act
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now
from tests.pausing import at_once


@pytest.fixture
def others(steps: Steps, outsider: User) -> Steps:
    """Takes runs of somebody else's through the protocol."""
    return Steps(steps.agent, outsider)


def waiting(queue: str, about: str) -> int:
    """How many messages the broker has for a queue, about one run or call."""
    with redis.Redis.from_url(given.REDIS_URL) as client:
        messages: Any = client.lrange(queue, 0, -1)
    return sum(about in json.loads(each)["headers"]["argsrepr"] for each in messages)


def take(run: Run) -> Lease | None:
    return take_lease(run.pk, epoch=now(run).epoch)


@pytest.mark.parametrize(("places", "share"), [(1, 1), (2, 1), (3, 2), (4, 3), (16, 12)])
def test_one_person_may_hold_most_places_and_not_all(places: int, share: int) -> None:
    assert fair.share_of(places) == share


def test_a_person_at_their_share_waits_and_another_does_not(
    steps: Steps, others: Steps, settings: Settings
) -> None:
    settings.THINK_PLACES = 4
    runs = [steps.start() for _ in range(4)]
    leases = [take(run) for run in runs]
    assert [lease is not None for lease in leases] == [True, True, True, False]
    assert take(others.start()) is not None

    assert leases[0] is not None
    steps.finish(leases[0])
    assert fair.next_turn() == (runs[3].pk, 1)
    assert take(runs[3]) is not None


def test_no_number_of_workers_at_once_takes_more_than_the_share(
    steps: Steps, settings: Settings
) -> None:
    settings.THINK_PLACES = 4
    runs = [steps.start() for _ in range(8)]
    taken = at_once([partial(take, run) for run in runs])
    assert sum(lease is not None for lease in taken) == 3


def test_a_message_does_first_what_waits_for_who_holds_fewer_places(
    steps: Steps, others: Steps
) -> None:
    mine = [steps.start() for _ in range(3)]
    theirs = others.start()  # the last of all
    assert take(mine[0]) is not None

    lease = take_fair_lease(mine[1].pk, epoch=1)

    assert lease is not None
    assert lease.run_id == theirs.pk
    assert waiting("think", mine[1].pk) == 1  # its own turn comes
    second = take_fair_lease(mine[1].pk, epoch=1)  # now both hold one
    assert second is not None
    assert second.run_id == mine[1].pk


def test_what_does_not_wait_is_not_taken_for_due(steps: Steps, others: Steps) -> None:
    acting, _calls = others.running("test.book")
    others.stop(others.start())
    assert take(steps.start()) is not None
    mine = steps.start()

    lease = take_fair_lease(mine.pk, epoch=1)

    assert lease is not None
    assert lease.run_id == mine.pk
    assert now(acting).lease_holder == ""


def test_an_executor_does_first_what_waits_for_who_holds_fewer_places(
    steps: Steps, others: Steps, outside: Outside
) -> None:
    _run, (busy,) = steps.running("test.draft")
    steps.claim(busy)
    _run, (mine,) = steps.running("test.book")
    _run, (theirs, later) = others.running("test.book", "test.book")

    act(mine.pk, 1)

    assert [anew(call).state for call in (theirs, later, mine)] == [
        "landed",
        "approved",
        "approved",
    ]
    assert waiting("act", mine.pk) >= 2  # once by the turn, and once more
    act(mine.pk, 1)
    act(mine.pk, 1)
    assert {anew(call).state for call in (later, mine)} == {"landed"}


def test_a_person_at_their_share_of_executors_waits_and_is_rung_for(
    steps: Steps, others: Steps, outside: Outside, settings: Settings
) -> None:
    settings.ACT_PLACES = 4
    calls = [steps.running("test.book")[1][0] for _ in range(4)]
    for call in calls[:3]:
        steps.claim(call)
    assert steps.act(calls[3]).state == "approved"

    _run, (theirs,) = others.running("test.book")
    assert others.act(theirs).state == "landed"
    assert fair.next_call() is None

    anew(calls[0])
    type(calls[0]).objects.filter(pk=calls[0].pk).update(claim_expires_at=None, claim_token="")
    assert steps.act(calls[0]).state == "landed"
    assert fair.next_call() == (calls[3].pk, 1)
    assert steps.act(calls[3]).state == "landed"


def test_who_has_as_many_runs_as_one_may_starts_no_more(
    steps: Steps, others: Steps, settings: Settings
) -> None:
    settings.RUNS_PER_PERSON = 3
    first = steps.start()
    steps.start(parent_id=first.pk)  # counts for its owner
    steps.start()
    with pytest.raises(TooManyRuns, match="3 of your runs have not ended") as refused:
        steps.start()
    assert refused.value.data["limit"] == 3
    others.start()

    steps.stop(first)  # and what it had started
    steps.start()


def test_two_starts_at_once_do_not_get_past_the_limit(steps: Steps, settings: Settings) -> None:
    settings.RUNS_PER_PERSON = 3

    def start() -> bool:
        try:
            steps.start()
        except TooManyRuns:
            return False
        return True

    assert sum(at_once([start] * 8)) == 3
    assert Run.objects.count() == 3


def test_nobody_continues_a_stopped_run_past_the_limit(steps: Steps, settings: Settings) -> None:
    settings.RUNS_PER_PERSON = 1
    stopped = steps.start()
    steps.stop(stopped)
    other = steps.start()
    with pytest.raises(TooManyRuns):
        resume_run(stopped.pk, by=steps.owner)
    assert now(stopped).status == "stopped_clean"
    steps.stop(other)
    assert resume_run(stopped.pk, by=steps.owner).status == "queued"


def test_who_starts_too_fast_is_told_for_how_long_to_wait(
    steps: Steps, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STARTS_PER_MINUTE = 2
    for _ in range(2):
        steps.stop(steps.start())
    with pytest.raises(TooManyRuns, match=r"in \d+ seconds") as refused:
        steps.start()
    assert 1 <= refused.value.data["retry_after"] <= 60

    monkeypatch.setattr(room, "MINUTE", timedelta(0))  # which is over now
    steps.start()


def test_a_run_that_was_started_twice_is_no_second_one(steps: Steps, settings: Settings) -> None:
    settings.RUNS_PER_PERSON = 1
    run = steps.start()
    with pytest.raises(Exception, match="duplicate key"):  # as without a limit: the caller knows
        steps.start(run_id=run.pk)
