"""The rights of agentruns/rights.py, as decisions meet them."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User

from agentruns import rights
from agentruns.errors import AgentrunsError, NotAllowed, NotFound
from compensation import saga
from review.models import Approval
from review.services import answer_doubt, decide, look_up_again
from tests.acting import acted, call, mail, message
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)

Refusal = type[AgentrunsError] | None


@pytest.fixture
def people(owner: User, outsider: User, reviewer: User, admin: User) -> dict[str, User]:
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(content_type__app_label="tools"))
    looker, keeper = User.objects.create_user("looker"), User.objects.create_user("keeper")
    looker.user_permissions.add(Permission.objects.get(codename=rights.SEE))
    keepers = Group.objects.create(name="keepers")
    keepers.permissions.add(Permission.objects.get(codename=rights.STOP))
    keeper.groups.add(keepers)
    left = User.objects.create_user("left", is_active=False)
    left.groups.add(keepers)
    gone = User.objects.create_superuser("gone", is_active=False)
    return {
        "owner": owner,
        "outsider": outsider,
        "reviewer": reviewer,
        "admin": admin,
        "staff": staff,
        "looker": looker,
        "keeper": keeper,
        "left": left,
        "gone": gone,
    }


# Who: may see, stop, decide, undo.
TABLE = {
    "owner": (True, True, True, True),
    "reviewer": (True, False, True, False),
    "admin": (True, True, True, True),
    "staff": (False, False, False, False),
    "looker": (True, False, False, False),
    "keeper": (True, True, False, True),
    "left": (False, False, False, False),
    "outsider": (False, False, False, False),
    "gone": (False, False, False, False),
}


@pytest.mark.parametrize("who", TABLE)
def test_rights_are_as_the_table_says(who: str, people: dict[str, User]) -> None:
    run, user = acted(people["owner"], mail()), people[who]
    asked = (rights.may_see, rights.may_stop, rights.may_decide, rights.may_undo)
    assert tuple(may(user, run) for may in asked) == TABLE[who]
    assert list(rights.visible_runs(user)) == ([run] if TABLE[who][0] else [])


def test_somebody_who_is_not_signed_in_may_nothing(owner: User) -> None:
    run, nobody = acted(owner, mail()), AnonymousUser()
    assert not rights.may_see(nobody, run)
    assert not rights.may_stop(nobody, run)
    assert not rights.visible_runs(nobody).exists()
    with pytest.raises(NotFound):
        decide(call(run).pk, by=nobody, verdict="approved", digest=call(run).args_digest)
    with pytest.raises(NotFound):
        saga.request_undo(run.pk, by=nobody, call_ids=[call(run).pk])


def test_an_inactive_owner_and_a_reviewer_who_left_the_group_may_nothing_more(
    owner: User, reviewer: User
) -> None:
    run = acted(owner, mail())
    owner.is_active = False
    reviewer.groups.clear()
    assert not rights.may_stop(owner, run)
    assert not rights.may_decide(reviewer, run)
    assert not rights.may_see(reviewer, run)


@pytest.mark.parametrize(
    ("who", "refusal"),
    [
        ("owner", None),
        ("reviewer", None),
        ("admin", None),
        ("staff", NotFound),
        ("looker", NotAllowed),
        ("keeper", NotAllowed),
        ("outsider", NotFound),
        ("gone", NotFound),
    ],
)
@pytest.mark.parametrize("verdict", ["approved", "rejected"])
def test_who_may_approve_and_reject(
    who: str, refusal: Refusal, verdict: str, people: dict[str, User]
) -> None:
    asked = call(acted(people["owner"], mail()))
    decision = {"by": people[who], "verdict": verdict, "digest": asked.args_digest}
    if refusal:
        with pytest.raises(refusal):
            decide(asked.pk, **decision)
        assert not Approval.objects.exists()
        assert call(asked.run).state == "awaiting_approval"
    else:
        assert decide(asked.pk, **decision).decided_by == people[who]
        assert call(asked.run).state == verdict


@pytest.mark.parametrize(
    ("who", "refusal"),
    [("owner", None), ("reviewer", None), ("keeper", NotAllowed), ("staff", NotFound)],
)
def test_who_may_say_what_became_of_a_call_in_doubt(
    who: str, refusal: Refusal, people: dict[str, User], world: RunningWorld
) -> None:
    world.fault("chat", "drop_after")
    run = acted(people["owner"], message())
    said = {"by": people[who], "answer": "happened", "evidence": "I saw it in #team."}
    if refusal:
        with pytest.raises(refusal):
            answer_doubt(call(run).pk, **said)
        with pytest.raises(refusal):
            look_up_again(call(run).pk, by=people[who])
        assert call(run).state == "in_doubt"
    else:
        look_up_again(call(run).pk, by=people[who])
        answer_doubt(call(run).pk, **said)
        assert call(run).state == "landed"
