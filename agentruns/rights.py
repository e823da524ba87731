"""Who may do what with a run: one place, for pages, API, sockets and services alike.

| | sees | stops | takes over | decides | undoes |
|---|---|---|---|---|---|
| the owner | yes | yes | yes | yes | yes |
| a reviewer | yes | no | yes | yes | no |
| staff | yes | yes | yes | no | yes |
| a superuser | yes | yes | yes | yes | yes |
| anybody else, or anybody inactive | no | no | no | no | no |

Who *stops* a run may hold it, let it go on, and raise its limits too. *Takes over* is a stop
that keeps what has not started for the person who goes on with it. *Decides* is the word on a
call that needs approval, and on what became of a call in doubt. Rights are read anew at every
question, so that a right taken away is gone at once.
"""

from typing import TypeAlias

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet

from agentruns.errors import NotAllowed, NotFound
from agentruns.models import Run

Person: TypeAlias = User | AnonymousUser

REVIEWERS = "reviewers"  # the name of the group


def is_reviewer(user: Person) -> bool:
    """Whether the person is in the group of reviewers."""
    return user.is_active and user.groups.filter(name=REVIEWERS).exists()


def is_admin(user: Person) -> bool:
    """Whether the person runs this place: staff, or a superuser."""
    return user.is_active and (user.is_staff or user.is_superuser)


def may_see(user: Person, run: Run) -> bool:
    """Whether the person may know that the run exists, and read all of it."""
    return _owns(user, run) or is_admin(user) or is_reviewer(user)


def may_stop(user: Person, run: Run) -> bool:
    return _owns(user, run) or is_admin(user)


def may_take_over(user: Person, run: Run) -> bool:
    return may_stop(user, run) or is_reviewer(user)


def may_decide(user: Person, run: Run) -> bool:
    """Whether the person's word counts for a call of the run: approval, and answers to doubt."""
    return _owns(user, run) or (user.is_active and user.is_superuser) or is_reviewer(user)


def may_undo(user: Person, run: Run) -> bool:
    return _owns(user, run) or is_admin(user)


def visible_runs(user: Person) -> QuerySet[Run]:
    """Every run that the person may see."""
    if is_admin(user) or is_reviewer(user):
        return Run.objects.all()
    return Run.objects.filter(owner_id=user.pk) if user.is_active else Run.objects.none()


def require(user: Person, run: Run, *, allowed: bool) -> User:
    """The person, who has signed in and is `allowed`.

    Raises NotAllowed otherwise, or NotFound for people who may not even see the run.
    """
    if allowed and isinstance(user, User):
        return user
    if may_see(user, run):
        raise NotAllowed(run_id=run.pk)
    raise NotFound(run_id=run.pk)


def _owns(user: Person, run: Run) -> bool:
    return user.is_active and run.owner_id == user.pk
