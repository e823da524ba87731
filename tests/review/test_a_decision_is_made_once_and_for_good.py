from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import InternalError, ProgrammingError

from agentruns.errors import BadInput, NotFound, WrongState
from agentruns.models import ToolCall
from agentruns.protocol.consent import expire_consent
from agentruns.protocol.ledger import clock
from agentruns.protocol.stop import request_stop
from review.models import Approval
from review.services import decide
from tests.acting import act, acted, call, events, fresh, mail, message
from tests.forging import rewrite
from tests.tools.conftest import RunningWorld
from tools.world.record import effects

pytestmark = pytest.mark.django_db(transaction=True)


def approve(asked: ToolCall, by: User, digest: str | None = None) -> Approval:
    digest = asked.args_digest if digest is None else digest
    return decide(asked.pk, by=by, verdict="approved", digest=digest)


def reject(asked: ToolCall, by: User, reason: str = "") -> Approval:
    return decide(asked.pk, by=by, verdict="rejected", digest=asked.args_digest, reason=reason)


def test_an_approved_call_goes_out_once_exactly_as_shown(
    owner: User, reviewer: User, world: RunningWorld
) -> None:
    run = acted(owner, mail("The real one"))
    asked = call(run)
    decision = approve(asked, reviewer)
    act(fresh(run))
    act(fresh(run))
    (sent,) = [e for e in effects(world.folder) if e.request_id == asked.request_id]
    assert sent.data["subject"] == "The real one"
    assert decision.args == asked.args
    assert decision.digest == asked.args_digest
    assert decision.summary == asked.summary


def test_a_rejected_call_never_goes_out_and_says_why(
    owner: User, reviewer: User, world: RunningWorld
) -> None:
    """Case D5."""
    run = acted(owner, mail())
    reject(call(run), reviewer, "  Wrong people. ")
    act(fresh(run))
    assert (call(run).state, call(run).detail) == ("rejected", "Wrong people.")
    assert Approval.objects.get().reason == "Wrong people."
    assert not [e for e in effects(world.folder) if e.request_id == call(run).request_id]


def test_the_same_decision_twice_is_one_decision(owner: User, reviewer: User) -> None:
    """Case D11: a double click."""
    run = acted(owner, mail())
    first = approve(call(run), reviewer)
    assert approve(call(run), reviewer) == first
    assert len(events(run, "call.approved")) == 1


def test_a_late_repeat_after_the_stop_still_gets_its_decision(owner: User, reviewer: User) -> None:
    run = acted(owner, mail())
    first = approve(call(run), reviewer)
    request_stop(run.pk, by=owner)
    assert approve(call(run), reviewer) == first
    assert call(run).state == "voided"


def test_the_other_decision_afterwards_is_refused_with_who_decided(
    owner: User, reviewer: User
) -> None:
    run = acted(owner, mail())
    approve(call(run), reviewer)
    with pytest.raises(WrongState, match="Omar has already approved this"):
        reject(call(run), owner)
    with pytest.raises(WrongState, match="Omar has already approved this"):
        reject(call(run), reviewer)
    assert call(run).state == "approved"


def test_a_click_after_the_stop_is_refused_with_the_reason(owner: User, reviewer: User) -> None:
    """Case D12."""
    run = acted(owner, mail())
    request_stop(run.pk, by=owner)
    for decision in (approve, reject):
        with pytest.raises(WrongState, match="The run was stopped before this was decided"):
            decision(call(run), reviewer)
    assert call(run).state == "voided"
    assert not Approval.objects.exists()


def test_a_page_that_shows_other_arguments_decides_nothing(owner: User, reviewer: User) -> None:
    """Case D3."""
    run = acted(owner, mail())
    for verdict in ("approved", "rejected"):
        with pytest.raises(WrongState, match="changed since you saw it"):
            decide(call(run).pk, by=reviewer, verdict=verdict, digest="0" * 64)
    assert call(run).state == "awaiting_approval"


@pytest.mark.parametrize("is_swept", [False, True])
def test_a_click_after_the_time_ran_out_is_refused(
    owner: User, reviewer: User, is_swept: bool
) -> None:
    run = acted(owner, mail())
    rewrite(ToolCall.objects.filter(run=run), consent_expires_at=clock().now)
    if is_swept:
        assert expire_consent(call(run).pk)
    with pytest.raises(WrongState, match="time to decide this"):
        approve(call(run), reviewer)
    assert not Approval.objects.exists()


def test_three_questions_are_decided_each_on_its_own(
    owner: User, reviewer: User, world: RunningWorld
) -> None:
    """Cases D6, D16: each call asks, and each goes as decided."""
    run = acted(owner, mail("One"), mail("Two"), mail("Three"))
    assert [c.state for c in run.calls.order_by("number")] == ["awaiting_approval"] * 3
    approve(call(run, 1), reviewer)
    reject(call(run, 2), owner)
    approve(call(run, 3), reviewer)
    act(fresh(run))
    act(fresh(run))
    assert [c.state for c in run.calls.order_by("number")] == ["landed", "rejected", "landed"]


@pytest.mark.parametrize(
    "bad", [{"verdict": "maybe"}, {"reason": "x" * 501}, {"reason": "nul \x00"}]
)
def test_bad_input_is_refused_and_decides_nothing(
    owner: User, reviewer: User, bad: dict[str, str]
) -> None:
    run = acted(owner, mail())
    given = {"verdict": "rejected", "digest": call(run).args_digest} | bad
    with pytest.raises(BadInput):
        decide(call(run).pk, by=reviewer, **given)
    assert call(run).state == "awaiting_approval"


def test_an_unknown_call_is_not_found(reviewer: User) -> None:
    with pytest.raises(NotFound):
        decide("call_nowhere", by=reviewer, verdict="approved", digest="")


def test_a_call_that_needs_nobody_cannot_be_decided(owner: User, world: RunningWorld) -> None:
    run = acted(owner, message())
    with pytest.raises(WrongState, match="can no longer be decided"):
        approve(call(run), owner)


@pytest.mark.parametrize(
    "change",
    [
        lambda: Approval.objects.update(verdict="rejected"),
        lambda: Approval.objects.all().delete(),
    ],
    ids=["update", "delete"],
)
def test_the_database_keeps_a_decision_as_it_is(
    owner: User, reviewer: User, change: Callable[[], object]
) -> None:
    run = acted(owner, mail())
    approve(call(run), reviewer)
    with pytest.raises((ProgrammingError, InternalError)):
        change()
    assert Approval.objects.get().verdict == "approved"
