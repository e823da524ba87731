"""Start a run: thread, run, grant and first event in one transaction; then the doorbell.

Guarantees that a run never exists without the authority it acts under, that it keeps the terms
of its agent as they were, and that a child of a stopped run is born stopped (protocol §7.2).
"""

from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import doorbell
from agentruns.errors import BadInput
from agentruns.models import TERMS, Agent, Run, Thread
from agentruns.protocol.grants import issue
from agentruns.protocol.ledger import add, lock_run, person, record
from agentruns.protocol.pause import PAUSED, hold
from agentruns.protocol.room import must_have_room
from agentruns.protocol.stop import stop_newborn


def start_run(
    *,
    owner: Any,
    agent: Agent,
    goal: str,
    run_id: str | None = None,
    parent_id: str | None = None,
    ring: bool = True,
) -> Run:
    """Queue `agent` to work at `goal` for `owner`, and return the run.

    `ring=False` leaves the doorbell alone; the sweeper finds the run all the same.
    Raises BadInput for a goal that is empty or over settings.GOAL_MAX_LENGTH characters, and
    TooManyRuns where the owner has no room for one more.
    """
    goal = checked_goal(goal)
    with transaction.atomic(durable=True):
        parent = lock_run(parent_id) if parent_id else None
        if run_id is None or not Run.objects.filter(pk=run_id).exists():  # else it is there already
            must_have_room(owner, starts=True)
        thread = parent.thread if parent else Thread.objects.create(owner=owner)
        terms = {name: getattr(agent, name) for name in TERMS}
        run = Run(owner=owner, agent=agent, goal=goal, thread=thread, parent=parent, **terms)
        run.pk = run_id or run.pk
        sets = add(run)
        issue(run, by=owner)
        about: dict[str, Any] = {"agent": agent.slug, "parent": parent_id}
        record(run, "run.created", actor=person(owner), sets=sets, **about)
        if parent and not parent.is_active:
            stop_newborn(run, parent)
        elif parent and parent.suspended_reason == PAUSED:
            hold(run, actor=person(owner), reason=PAUSED)
        elif ring:
            doorbell.ring_task("agentruns.tasks.think", run.pk, run.epoch)
    return run


def checked_goal(goal: str) -> str:
    """The goal without surrounding space. Raises BadInput with the reason."""
    goal = goal.strip()
    if not goal:
        raise BadInput(_("Write what the agent should do."), field="goal")
    if "\x00" in goal:
        raise BadInput(_("The goal has a character that cannot be stored."), field="goal")
    if len(goal) > settings.GOAL_MAX_LENGTH:
        raise BadInput(
            _("The goal has %(length)d characters; at most %(limit)d can be used.")
            % {"length": len(goal), "limit": settings.GOAL_MAX_LENGTH},
            field="goal",
        )
    return goal
