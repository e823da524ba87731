"""Runs for the bench: the protocol's own verbs, and tools whose effect costs nothing.

So what is measured is durability, not a tool.
"""

import json
import threading
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from pydantic import BaseModel

from agentruns.models import Agent, ToolCall
from agentruns.protocol.lease import Fragment, Lease, take_lease
from agentruns.protocol.start import start_run
from agentruns.protocol.turn import Proposal, finish_turn, propose_call
from tools import policy, registry
from tools.contract import Context, Draft, Receipt, Tier, UndoReceipt

READ, EFFECT = "bench.read", "bench.append"

appended: list[str] = []


class Args(BaseModel):
    what: str


class Append:
    """The trivial effect, the same for every contestant: an element more in a list."""

    title = "Append"
    undo_note = "It is taken out again."

    def describe(self, args: Args) -> str:
        return f"append “{args.what}”"

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        appended.append(args.what)
        return Receipt({"length": len(appended)}, "It is done.")

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoReceipt:
        return UndoReceipt()


_registering = threading.Lock()  # of several threads, one does it


@dataclass
class Player:
    """Somebody whose agent may use both tools, and what a driver does for their runs."""

    owner: User = field(init=False)
    agent: Agent = field(init=False)
    _written: int = 0

    def __post_init__(self) -> None:
        with _registering:
            for name, tier in ((READ, Tier.READ_ONLY), (EFFECT, Tier.REVERSIBLE)):
                if registry.get(name) is None:
                    registry.tool(name, tier=tier, args=Args)(Append)
        policy.sync()
        self.owner, _ = User.objects.get_or_create(username="bench")
        self.agent, _ = Agent.objects.get_or_create(
            slug="bench",
            defaults={
                "name": "Bench",
                "model": "demo:none",
                "tools": [READ, EFFECT],
                "is_listed": False,
            },
        )

    def pick_up(self) -> Lease:
        """A new run whose model speaks."""
        run = start_run(owner=self.owner, agent=self.agent, goal="Be quick.", ring=False)
        return self.think(run.pk)

    def think(self, run_id: str) -> Lease:
        """The run's next turn."""
        lease = take_lease(run_id, epoch=1)
        assert lease is not None
        return lease

    def propose(self, lease: Lease, tool: str) -> ToolCall:
        """The model asks for one call; its arguments are new each time."""
        self._written += 1
        args = json.dumps({"what": f"{lease.run_id} {self._written}"})
        call = propose_call(lease, Proposal(tool, args, f"call_{self._written}", 10))
        assert call is not None
        return call

    def finish(self, lease: Lease) -> None:
        """The answer ends cleanly."""
        assert finish_turn(lease, Fragment("I do that now.", 40, 9), "stop")
