"""Settled by hand, with a reason, a name and a time (R43)."""

from collections.abc import Callable

import httpx2
import pytest
from django.contrib.auth.models import User

from agentruns.errors import BadInput, NotAllowed, NotFound, WrongState
from agentruns.models import Run
from agentruns.protocol.ledger import person
from compensation import saga
from compensation.queries import needs_person
from tests.acting import call, events, message, stopped, ticket
from tests.compensation.conftest import WorkerDied, let_pauses_pass, step, undo_all
from tests.forging import rewrite
from tests.tools.conftest import RunningWorld
from tools.contract import UndoReceipt

pytestmark = pytest.mark.django_db(transaction=True)

REASON = "I closed it in the ticket system."


@pytest.fixture
def given_up(owner: User, world: RunningWorld) -> Run:
    """A run whose one undo was tried in vain as often as it may be."""
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    world.fault("tickets", "refuse", times=saga.ATTEMPT_LIMIT)
    for _ in range(saga.ATTEMPT_LIMIT):
        undo_all(run)
        let_pauses_pass(run)
    assert step(run).state == "failed"
    return run


def settle(run: Run, by: User, answer: str = saga.UNDONE, reason: str = REASON) -> None:
    saga.settle_by_hand(step(run).pk, by=by, answer=answer, reason=reason)


def test_what_a_person_has_undone_is_marked_with_who_when_and_why(
    given_up: Run, admin: User
) -> None:
    settle(given_up, admin, reason=f"  {REASON} ")
    kept = step(given_up)
    assert (kept.state, kept.settled_by, kept.settled_reason) == ("undone", admin, REASON)
    assert kept.settled_at is not None
    assert call(given_up).undo_state == "undone"
    assert events(given_up, "call.undone") == [{"by": "hand"}]
    (event,) = given_up.events.filter(kind="undo.done_by_hand")
    assert (event.actor, event.data["why"]) == (person(admin), REASON)


def test_what_is_left_as_it_is_stands_and_is_settled(given_up: Run, owner: User) -> None:
    settle(given_up, owner, saga.LEAVE, "We keep the ticket.")
    assert (step(given_up).state, call(given_up).undo_state) == ("left", "")
    assert not needs_person().exists()
    assert len(events(given_up, "undo.left")) == 1


@pytest.mark.breaks_ledger
def test_what_somebody_changed_and_what_cannot_be_undone_can_be_settled_too(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, message(), message("Another."))
    ts = call(run, 1).receipt["ts"]
    edit = {"channel": "#team", "ts": ts, "text": "Wednesday!"}
    httpx2.post(f"{world.http}/chat/chat.update", json=edit)
    rewrite(type(call(run)).objects.filter(pk=call(run, 2).pk), receipt={})
    saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    undo_all(run)
    for number, state in ((1, "changed"), (2, "cannot")):
        assert step(run, number).state == state
        saga.settle_by_hand(step(run, number).pk, by=owner, answer="undone", reason=REASON)
    assert [each.undo_state for each in run.calls.all()] == ["undone", "undone"]


@pytest.mark.parametrize("reason", ["", "  \n", "x" * (saga.REASON_LENGTH + 1), "\x00"])
def test_nobody_settles_without_a_reason(given_up: Run, owner: User, reason: str) -> None:
    with pytest.raises(BadInput, match="Say why"):
        settle(given_up, owner, reason=reason)
    assert step(given_up).state == "failed"


def test_there_is_no_third_answer(given_up: Run, owner: User) -> None:
    with pytest.raises(BadInput, match="either undone or leave"):
        settle(given_up, owner, "maybe")


def test_only_who_may_undo_may_settle(given_up: Run, reviewer: User, outsider: User) -> None:
    with pytest.raises(NotAllowed):
        settle(given_up, reviewer)
    with pytest.raises(NotFound):
        settle(given_up, outsider)
    with pytest.raises(NotFound):
        saga.settle_by_hand("comp_nowhere", by=reviewer, answer="undone", reason=REASON)
    assert step(given_up).state == "failed"


def test_settled_twice_the_same_way_it_is_settled_once(
    given_up: Run, owner: User, admin: User
) -> None:
    for somebody in (owner, admin):
        settle(given_up, somebody)
    assert step(given_up).settled_by == owner
    assert len(events(given_up, "undo.done_by_hand")) == 1
    with pytest.raises(WrongState, match="nothing to settle"):
        settle(given_up, owner, saga.LEAVE)


def test_what_is_under_way_or_undone_is_not_settled(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    with pytest.raises(WrongState, match="nothing to settle"):
        settle(run, owner)
    undo_all(run)
    with pytest.raises(WrongState, match="nothing to settle"):
        settle(run, owner, saga.LEAVE)


def test_what_was_asked_for_anew_since_is_not_settled_by_its_old_step(
    given_up: Run, owner: User
) -> None:
    old = step(given_up)
    saga.try_again(old.pk, by=owner)
    with pytest.raises(WrongState, match="asked for anew"):
        saga.settle_by_hand(old.pk, by=owner, answer="undone", reason=REASON)
    assert not needs_person().exists()


def test_what_was_left_can_be_asked_for_again(given_up: Run, owner: User) -> None:
    settle(given_up, owner, saga.LEAVE)
    saga.try_again(step(given_up).pk, by=owner)
    undo_all(given_up)
    assert step(given_up).state == "undone"


def test_a_report_that_comes_after_a_persons_word_is_the_truth_and_changes_no_mark(
    owner: User,
    world: RunningWorld,
    monkeypatch: pytest.MonkeyPatch,
    die_at: Callable[[str], None],
) -> None:
    """The worker was slow, not dead; meanwhile a person had closed the ticket, or left it."""
    for answer, state in ((saga.UNDONE, "undone"), (saga.LEAVE, "undone")):
        run = stopped(owner, ticket())
        saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
        claims = []
        for _ in range(saga.ATTEMPT_LIMIT):
            die_at("undo:1:started")
            with pytest.raises(WorkerDied):
                saga.run_next(run.pk)
            claims.append(saga.Claim(run.pk, step(run).pk, step(run).claim_token, 30.0))
            let_pauses_pass(run)
        saga.run_next(run.pk)
        settle(run, owner, answer)
        saga._attempt(step(run))
        saga._settle(claims[0], UndoReceipt({}, "Closed."))
        assert (step(run).state, call(run).undo_state) == (state, "undone")
        assert len(events(run, "call.undone")) == 1
