"""H1, H5: one lease, a fresh holder per claim, taken away from whoever falls silent."""

from agentruns.models import Output, ToolCall
from agentruns.protocol.lease import (
    LOST_TURNS_LIMIT,
    give_back_lease,
    renew_lease,
    take_away_lease,
    take_lease,
)
from agentruns.protocol.turn import Proposal, break_turn, finish_turn, propose_call
from tests.agentruns.steps import TEXT, Steps, anew, kinds, now, pass_time
from tests.pausing import at_once


def test_of_ten_drivers_that_come_at_once_one_gets_the_run(steps: Steps) -> None:
    run = steps.start()

    leases = at_once([lambda: take_lease(run.pk, epoch=1) for _ in range(10)])

    assert len([lease for lease in leases if lease]) == 1
    assert Output.objects.count() == 1
    assert kinds(run).count("turn.started") == 1


def test_a_zombie_cannot_extend_its_heirs_lease(steps: Steps) -> None:
    run = steps.start()
    zombie = steps.think(run)
    pass_time(now(run))
    take_away_lease(run.pk)
    heir = steps.think(run)
    expires = now(run).lease_expires_at

    assert renew_lease(zombie, TEXT) is False
    assert give_back_lease(zombie, TEXT) is False

    assert now(run).lease_holder == heir.holder != zombie.holder
    assert now(run).lease_expires_at == expires
    assert renew_lease(heir, TEXT) is True


def test_what_a_zombie_writes_is_refused_and_counted(steps: Steps) -> None:
    run = steps.start()
    zombie = steps.think(run)
    pass_time(now(run))
    steps.sweep()

    late = Proposal("test.book", '{"what": "late"}', "p1", 0)
    assert propose_call(zombie, late) is None
    assert finish_turn(zombie, TEXT, "stop") is False
    assert break_turn(zombie, TEXT, "provider_failed", "") is False
    assert give_back_lease(zombie, TEXT) is False

    assert kinds(run).count("write.rejected_late") == 4
    assert not ToolCall.objects.exists()
    assert now(run).status == "running"


def test_the_driver_of_an_earlier_turn_writes_nothing_into_a_later_one(steps: Steps) -> None:
    """Same epoch, another holder: what it did is over."""
    run = steps.start()
    earlier = steps.think(run)
    steps.propose(earlier, "test.unknown")
    assert steps.finish(earlier)
    later = steps.think(run)
    assert earlier.epoch == later.epoch

    assert renew_lease(earlier, TEXT) is False
    assert propose_call(earlier, Proposal("test.book", '{"what": "x"}', "p2", 0)) is None
    assert steps.finish(earlier) is False

    assert now(run).lease_holder == later.holder
    assert ToolCall.objects.count() == 1


def test_a_lease_that_nobody_renews_is_taken_away_in_a_new_epoch(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.book")
    pass_time(now(run))

    assert steps.sweep()["leases"] == 1

    assert (now(run).status, now(run).epoch, now(run).lease_holder) == ("running", 2, "")
    assert (anew(call).state, anew(call).reason) == ("voided", "worker_lost")
    assert Output.objects.get().status == "incomplete"
    assert take_lease(run.pk, epoch=1) is None, "the message of the old epoch"
    assert steps.think(run).turn == 2


def test_a_lease_that_is_renewed_stays(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    pass_time(now(run))
    assert renew_lease(lease, TEXT)

    assert take_away_lease(run.pk) is False
    assert Output.objects.get().text == TEXT.text


def test_a_turn_without_calls_that_lost_its_worker_is_not_the_end_of_the_run(
    steps: Steps,
) -> None:
    """The bell for the next driver is lost, too: the sweeper must ring again, not complete."""
    run = steps.start()
    steps.think(run)
    pass_time(now(run))
    steps.sweep()

    steps.ring_again(run)

    assert now(run).status == "running"
    assert steps.think(run).turn == 2


def test_a_run_whose_workers_die_each_time_fails_in_the_end(steps: Steps) -> None:
    """H5: no ghost is left running for ever."""
    run = steps.start()
    for _ in range(LOST_TURNS_LIMIT):
        steps.think(run)
        pass_time(now(run))
        steps.sweep()

    assert (now(run).status, now(run).failure) == ("failed", "worker_lost")


def test_the_lease_of_a_stopped_run_is_taken_away_too(steps: Steps) -> None:
    """B3: not stopped until the driver acknowledged, or its lease was taken."""
    run = steps.start()
    steps.think(run)
    steps.stop(run)
    assert now(run).status == "cancel_requested"
    assert steps.sweep()["leases"] == 0
    assert now(run).status == "cancel_requested"

    pass_time(now(run))
    steps.sweep()

    assert now(run).status == "stopped_clean"
