"""Withhold: take one call back while its draft is held back (protocol §5).

Guarantees that it is either dropped, and then never goes out, or had gone out before: the run's
lock decides, and the gate asks under the same lock.
"""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agentruns.errors import WrongState
from agentruns.models import ToolCall
from agentruns.protocol import items
from agentruns.protocol.advance import advance
from agentruns.protocol.ledger import clock, lock_call, person

WITHHELD = "withheld"


def withhold_call(call_id: str, *, by: Any) -> ToolCall:
    """Drop a call that waits to be sent; its run goes on, and its model is told. The same again if
    it was withheld before. Raises NotFound, or WrongState if it is not held back any more.
    """
    with transaction.atomic(durable=True):
        run, call = lock_call(call_id)
        if call.reason == WITHHELD:
            return call
        if not call.is_held_back:
            raise WrongState(_("It is not waiting to be sent any more."), state=call.state)
        actor, now = person(by), clock().now
        items.end(run, call, "void", actor=actor, reason=WITHHELD, data={}, ended_at=now)
        advance(run)
    return call
