"""Who may do what with a run: one place, for pages, API, sockets and services alike.

| | sees | stops | takes over | decides | undoes |
|---|---|---|---|---|---|
| the owner | yes | yes | yes | yes | yes |
| a reviewer | yes | no | yes | yes | no |
| who has the permission `agentruns.view_run` | yes | no | no | no | no |
| who has the permission `agentruns.stop_run` | yes | yes | yes | no | yes |
| a superuser | yes | yes | yes | yes | yes |
| anybody else, or anybody inactive | no | no | no | no | no |

Who *stops* a run may hold it, let it go on, and raise its limits too. *Takes over* is a stop
that keeps what has not started for the person who goes on with it. *Decides* is the word on a
call that needs approval, and on what became of a call in doubt. Rights are read anew at every
question, so that a right taken away is gone at once. To be staff is to enter the admin, and no
right to runs: whoever tags tools need not read what agents do for others.

Where an admin has named a group that approves the calls of a tool, its members alone do, and see
the runs that have such a call.
"""

from typing import TypeAlias

from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models import Exists, OuterRef, Q, QuerySet

from agentruns.errors import NotAllowed, NotFound
from agentruns.models import Run, ToolCall
from tools.models import Tool

Person: TypeAlias = User | AnonymousUser

REVIEWERS = "reviewers"  # the name of the group
SEE, STOP = "view_run", "stop_run"  # permissions; the first shows the admin's list of runs, too


def is_reviewer(user: Person) -> bool:
    """Whether the person is in the group of reviewers."""
    return user.is_active and user.groups.filter(name=REVIEWERS).exists()


def sees_all(user: Person) -> bool:
    """Whether the person may see every run there is."""
    return is_reviewer(user) or _has(user, SEE, STOP)


def stops_all(user: Person) -> bool:
    """Whether the person may stop, hold and undo every run there is."""
    return _has(user, STOP)


def may_see(user: Person, run: Run) -> bool:
    """Whether the person may know that the run exists, and read all of it."""
    return _owns(user, run) or sees_all(user) or _approves_in(user, run)


def may_stop(user: Person, run: Run) -> bool:
    return _owns(user, run) or stops_all(user)


def may_take_over(user: Person, run: Run) -> bool:
    return may_stop(user, run) or is_reviewer(user)


def may_decide(user: Person, run: Run) -> bool:
    """Whether the person's word counts for a call of the run: approval, and answers to doubt."""
    return _owns(user, run) or (user.is_active and user.is_superuser) or is_reviewer(user)


def may_approve(user: Person, run: Run, group: int | None) -> bool:
    """Whether the person's word counts for a call whose tool has its calls approved by the group
    with this id, or by whoever decides.
    """
    if group is None:
        return may_decide(user, run)
    return user.is_active and user.groups.filter(pk=group).exists()


def may_undo(user: Person, run: Run) -> bool:
    return _owns(user, run) or stops_all(user)


def visible_runs(user: Person) -> QuerySet[Run]:
    """Every run that the person may see."""
    if sees_all(user):
        return Run.objects.all()
    if not user.is_active:
        return Run.objects.none()
    own = Q(owner_id=user.pk)
    names = list(_tools_approved_by(user))
    if not names:
        return Run.objects.filter(own)
    asked = ToolCall.objects.filter(run=OuterRef("pk"), tool__in=names)
    return Run.objects.filter(own | Exists(asked))


def visible_run(user: Person, run_id: str, *related: str) -> Run | None:
    """The run, with its `related` rows, if the person may see it."""
    run = Run.objects.select_related(*related).filter(pk=run_id).first()
    return run if run is not None and may_see(user, run) else None


def require(user: Person, run: Run, *, allowed: bool) -> User:
    """The person, who has signed in and is `allowed`.

    Raises NotAllowed otherwise, or NotFound for people who may not even see the run.
    """
    if allowed and isinstance(user, User):
        return user
    if may_see(user, run):
        raise NotAllowed(run_id=run.pk)
    raise NotFound(run_id=run.pk)


def _approves_in(user: Person, run: Run) -> bool:
    return (
        user.is_active
        and ToolCall.objects.filter(run=run, tool__in=_tools_approved_by(user)).exists()
    )


def _tools_approved_by(user: Person) -> QuerySet[Tool, str]:
    """The names of the tools whose calls are approved by a group that the person is in."""
    return Tool.objects.filter(approver_group__user=user.pk).values_list("name", flat=True)


def _has(user: Person, *permissions: str) -> bool:
    """Whether the person has one of the permissions, alone or by a group."""
    if not user.is_active or user.is_superuser:
        return user.is_active
    given = Permission.objects.filter(
        Q(user=user.pk) | Q(group__user=user.pk),
        content_type__app_label=Run._meta.app_label,
        codename__in=permissions,
    )
    return given.exists()


def _owns(user: Person, run: Run) -> bool:
    return user.is_active and run.owner_id == user.pk
