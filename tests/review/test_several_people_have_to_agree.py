"""Two or more different people agree to the same call, or it does not go (R50, I12)."""

import pytest
from django.contrib.auth.models import Group, User

from agentruns import rights
from agentruns.errors import NotAllowed, NotFound, WrongState
from agentruns.models import ToolCall
from agentruns.protocol.gate import claim_call, pass_gate
from agentruns.protocol.stop import request_stop
from agentruns.queries import entry
from review.models import Approval
from review.services import decide
from tests.acting import act, acted, call, events, fresh, mail
from tests.pausing import at_once
from tests.tools.conftest import RunningWorld
from tools import policy
from tools.models import Tool
from tools.world.record import effects

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _two_have_to_agree(transactional_db: None) -> None:
    policy.sync()
    Tool.objects.filter(name="email.send").update(approvals_needed=2)


@pytest.fixture
def finance() -> Group:
    """Only its members approve mail."""
    group = Group.objects.create(name="Finance")
    Tool.objects.filter(name="email.send").update(approver_group=group)
    return group


def say(asked: ToolCall, by: User, verdict: str = "approved") -> Approval:
    return decide(asked.pk, by=by, verdict=verdict, digest=asked.args_digest)


def test_the_second_lets_it_go_and_both_are_kept(
    owner: User, reviewer: User, world: RunningWorld
) -> None:
    run = acted(owner, mail("For two"))
    say(call(run), owner)
    assert call(run).state == "awaiting_approval"
    assert (entry(call(run))["approvals_given"], entry(call(run))["approvals_needed"]) == (1, 2)
    act(fresh(run))

    say(call(run), reviewer)
    assert call(run).state == "approved"
    act(fresh(run))

    assert {each.decided_by for each in Approval.objects.all()} == {owner, reviewer}
    assert [e["given"] for e in events(run, "call.approval_given")] == [1]
    assert [e["given"] for e in events(run, "call.approved")] == [2]
    assert [e["approvals"] for e in events(run, "call.commit_allowed")] == [2]
    sent = [e for e in effects(world.folder) if e.request_id == call(run).request_id]
    assert len(sent) == 1


def test_one_person_is_not_two(owner: User) -> None:
    """A second click is the same decision."""
    run = acted(owner, mail())
    assert say(call(run), owner) == say(call(run), owner)
    assert (call(run).state, call(run).consent_count) == ("awaiting_approval", 1)
    assert Approval.objects.count() == 1


def test_one_rejection_is_enough(owner: User, reviewer: User) -> None:
    run = acted(owner, mail())
    say(call(run), owner)
    say(call(run), reviewer, "rejected")
    assert call(run).state == "rejected"
    with pytest.raises(WrongState, match="Omar has already rejected this"):
        say(call(run), User.objects.create_superuser("third"))


def test_somebody_may_think_better_of_it(owner: User) -> None:
    run = acted(owner, mail())
    say(call(run), owner)
    say(call(run), owner, "rejected")
    assert call(run).state == "rejected"


def test_a_late_repeat_of_either_is_its_own_decision(owner: User, reviewer: User) -> None:
    run = acted(owner, mail())
    first, second = say(call(run), owner), say(call(run), reviewer)
    request_stop(run.pk, by=owner)
    assert (say(call(run), owner), say(call(run), reviewer)) == (first, second)


def test_both_at_the_same_moment_are_two(owner: User, reviewer: User) -> None:
    run = acted(owner, mail())
    asked = call(run)
    at_once([lambda: say(asked, owner), lambda: say(asked, reviewer)])
    assert (call(run).state, call(run).consent_count) == ("approved", 2)


def test_stop_withdraws_it_between_the_two(owner: User, reviewer: User) -> None:
    run = acted(owner, mail())
    say(call(run), owner)
    request_stop(run.pk, by=owner)
    with pytest.raises(WrongState, match="The run was stopped before this was decided"):
        say(call(run), reviewer)
    assert call(run).state == "voided"


def test_the_gate_counts_too(owner: User, reviewer: User) -> None:
    """Three are wanted by the time that two have agreed, and nobody has looked since."""
    run = acted(owner, mail())
    say(call(run), owner)
    say(call(run), reviewer)
    Tool.objects.filter(name="email.send").update(approvals_needed=3)
    claim = claim_call(call(run).pk, epoch=run.epoch)
    assert claim is not None

    assert pass_gate(claim) is False
    assert call(run).reason == "needs_consent"


def test_only_members_of_the_group_decide_and_others_are_told_which(
    owner: User, reviewer: User, admin: User, finance: Group
) -> None:
    run = acted(owner, mail())
    for person in (owner, reviewer, admin):
        for verdict in ("approved", "rejected"):
            with pytest.raises(NotAllowed, match="“Finance”"):
                say(call(run), person, verdict)
    assert not Approval.objects.exists()
    finance.user_set.add(owner, admin)
    say(call(run), owner)
    say(call(run), admin)
    assert call(run).state == "approved"


def test_a_member_sees_the_runs_that_ask_and_no_others(
    owner: User, outsider: User, finance: Group
) -> None:
    other, run = acted(owner), acted(owner, mail())
    with pytest.raises(NotFound):
        say(call(run), outsider)
    finance.user_set.add(outsider)
    assert list(rights.visible_runs(outsider)) == [run]
    assert (rights.may_see(outsider, run), rights.may_see(outsider, other)) == (True, False)
    assert not rights.may_stop(outsider, run)
    assert not rights.may_decide(outsider, run)
    assert say(call(run), outsider).decided_by == outsider
