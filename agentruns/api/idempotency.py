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
from agentruns.errors import BadInput
from agentruns.models import Agent, IdempotencyKey, Run
from agentruns.protocol.start import checked_goal, start_run

KEY = re.compile(r"[!-~]{1,255}")

Answer = dict[str, Any]


def start_once(
    *, owner: Any, agent: Agent, goal: str, key: str, answer_of: Callable[[Run], Answer]
) -> Answer:
    """Start the run that `key` stands for, or find it; return the answer, the same each time.

    `answer_of` makes the answer of a run. Raises BadInput for a key or goal that cannot be used,
    KeyReused if the key was used for something else.
    """
    goal = checked_goal(goal)
    if not KEY.fullmatch(key):
        raise BadInput(_("An Idempotency-Key has 1 to 255 visible ASCII characters."))
    digest = hashlib.sha256(json.dumps([agent.pk, goal]).encode()).hexdigest()
    kept, _made = IdempotencyKey.objects.get_or_create(
        user=owner, key=key, defaults={"digest": digest, "run_id": ids.run_id()}
    )
    if kept.digest != digest:
        raise KeyReused()
    if kept.answer is None:
        run = _run_of(kept, owner=owner, agent=agent, goal=goal)
        # Whoever comes first decides; all read what is kept.
        IdempotencyKey.objects.filter(pk=kept.pk, answer__isnull=True).update(answer=answer_of(run))
        kept.refresh_from_db()
    assert kept.answer is not None
    return kept.answer


def _run_of(kept: IdempotencyKey, *, owner: Any, agent: Agent, goal: str) -> Run:
    try:
        return start_run(owner=owner, agent=agent, goal=goal, run_id=kept.run_id)
    except IntegrityError:  # it was started already, by a request that has not answered yet
        return Run.objects.get(pk=kept.run_id)
