"""Start a run once, however often it is asked for (E15).

The key is kept before the run is started, with the id that the run will have: two requests at
once, or a repeat after a crash between the two, meet at that id.
"""

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError
from django.utils.translation import gettext as _

from agentruns import ids
from agentruns.api.errors import KeyReused
from agentruns.errors import BadInput, WrongState
from agentruns.models import Agent, IdempotencyKey, Run
from agentruns.protocol.start import checked_goal, start_run

KEY = re.compile(r"[!-~]{1,255}")

Answer = dict[str, Any]


def start_once(
    *,
    owner: Any,
    agent: Agent,
    goal: str,
    parent_id: str | None,
    key: str,
    answer_of: Callable[[Run], Answer],
) -> Answer:
    """Start the run that `key` stands for, or find it; return the answer, the same each time.

    `answer_of` makes the answer of a run. Raises BadInput for a key, goal or parent that cannot
    be used, KeyReused if the key was used for something else.
    """
    goal = checked_goal(goal)
    if not KEY.fullmatch(key):
        raise BadInput(_("An Idempotency-Key has 1 to 255 visible ASCII characters."))
    wanted = {"owner": owner, "agent": agent, "goal": goal, "parent_id": parent_id}
    said = [agent.pk, goal, *([parent_id] if parent_id else [])]
    digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    kept, _made = IdempotencyKey.objects.get_or_create(
        user=owner, key=key, defaults={"digest": digest, "run_id": ids.run_id()}
    )
    if kept.digest != digest:
        raise KeyReused()
    if kept.answer is None:
        run = _run_of(kept, **wanted)
        # Whoever comes first decides; all read what is kept.
        IdempotencyKey.objects.filter(pk=kept.pk, answer__isnull=True).update(answer=answer_of(run))
        kept.refresh_from_db()
    assert kept.answer is not None
    return kept.answer


def must_be_at_work(parent_id: str | None, owner: Any) -> None:
    """Raises BadInput for a parent that is no run of the owner, WrongState for one that has ended
    or is stopping.
    """
    if parent_id is None:
        return
    parent = Run.objects.filter(pk=parent_id, owner=owner).first()
    if parent is None:
        raise BadInput(_("You have no run by that name."), field="parent")
    if not parent.is_active:
        raise WrongState(_("The parent has ended, or is stopping."), parent=parent_id)


def _run_of(kept: IdempotencyKey, **wanted: Any) -> Run:
    if run := Run.objects.filter(pk=kept.run_id).first():
        return run  # started already, by a request that has not answered
    must_be_at_work(wanted["parent_id"], wanted["owner"])
    try:
        return start_run(**wanted, run_id=kept.run_id)
    except IntegrityError:  # by one at this very moment
        return Run.objects.get(pk=kept.run_id)
