"""Break the ledger by hand, and see what verify says of it.

The triggers are switched off for it: without that, the database refuses most of this.
"""

from pathlib import Path
from typing import Any

from agentruns.models import LedgerEvent, Run, ToolCall
from agentruns.verify import Breach, Scope, verify
from tests.forging import forge
from tools.journal import Journal
from tools.world.journal import CHAT

sql = forge


def breaches(**scope: Any) -> dict[str, list[Breach]]:
    """What is wrong, by invariant; those that hold are not in it."""
    results = verify(Scope(**scope))
    return {each.invariant.code: each.breaches for each in results if each.breaches}


def whats(code: str, **scope: Any) -> list[str]:
    """What is wrong by that invariant, in words."""
    return [breach.what for breach in breaches(**scope).get(code, [])]


def record(run: Run, kind: str, call: ToolCall | None = None, **data: Any) -> LedgerEvent:
    """An event that nobody's verb has written."""
    return LedgerEvent.objects.create(run=run, kind=kind, actor="executor", call=call, data=data)


def at_number(run: Run, number: int) -> ToolCall:
    return ToolCall.objects.get(run=run, number=number)


def post(folder: Path, request_id: str, ts: str = "1") -> None:
    """The world's record of a chat message."""
    Journal(folder / CHAT).append(
        "posted", ts=ts, client_msg_id=request_id, channel="team", text="Hello"
    )


def delete(folder: Path, ts: str = "1") -> None:
    """The world's record of its removal."""
    Journal(folder / CHAT).append("deleted", ts=ts, channel="team")
