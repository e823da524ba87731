"""The protocol's verbs in the order in which workers call them, one line per step of a story."""

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agentruns.models import Agent, LedgerEvent, Run, StopRequest, ToolCall
from agentruns.planner.history import result_words
from agentruns.protocol import consent
from agentruns.protocol.execute import execute_call, look_up_call
from agentruns.protocol.gate import Claim, claim_call
from agentruns.protocol.lease import Fragment, Lease, give_back_lease, take_lease
from agentruns.protocol.ledger import lock_call
from agentruns.protocol.outcome import record_landed
from agentruns.protocol.pause import pause_run, unpause_run
from agentruns.protocol.resume import resume_run
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from agentruns.protocol.sweep import ring_again, sweep
from agentruns.protocol.turn import Proposal, finish_turn, propose_call
from tests.forging import rewrite
from tools.contract import Receipt

TEXT = Fragment("I will do that. Then I am done.", tokens_in=40, tokens_out=9)


@dataclass
class Steps:
    """Steps of the runs of one agent and one owner. Every step is the real verb."""

    agent: Agent
    owner: User

    def start(self, **more: Any) -> Run:
        return start_run(owner=self.owner, agent=self.agent, goal="Do it.", ring=False, **more)

    def think(self, run: Run) -> Lease:
        """Pick the run up: its next turn is being streamed."""
        lease = take_lease(run.pk, epoch=now(run).epoch)
        assert lease is not None
        return lease

    def propose(self, lease: Lease, tool: str, what: str = "it", **more: Any) -> ToolCall:
        number = ToolCall.objects.filter(run=lease.run_id).count() + 1
        raw = json.dumps({"what": what, **more})
        call = propose_call(lease, Proposal(tool, raw, f"provider_{number}", offset=10))
        assert call is not None
        return call

    def finish(self, lease: Lease) -> bool:
        return finish_turn(lease, TEXT, "tool_call")

    def turn(self, run: Run, *tools: str) -> list[ToolCall]:
        """A whole turn: picked up, the calls written, the answer ended cleanly."""
        lease = self.think(run)
        calls = [self.propose(lease, tool, f"thing {n}") for n, tool in enumerate(tools)]
        assert self.finish(lease)
        return [anew(call) for call in calls]

    def running(self, *tools: str) -> tuple[Run, list[ToolCall]]:
        """A run whose first turn has ended and asked for these calls."""
        run = self.start()
        return now(run), self.turn(run, *tools)

    def act(self, call: ToolCall) -> ToolCall:
        """What the act worker does with one message."""
        execute_call(call.pk, epoch=now(call.run).epoch)
        return anew(call)

    def claim(self, call: ToolCall) -> Claim:
        claim = claim_call(call.pk, epoch=now(call.run).epoch)
        assert claim is not None
        return claim

    def land(self, claim: Claim) -> None:
        """What the executor records when the outside has said yes."""
        record_landed(claim, Receipt({}, "Done."))

    def approve(self, call: ToolCall, *, by: User | None = None, digest: str = "") -> ToolCall:
        with transaction.atomic(durable=True):
            run, locked = lock_call(call.pk)
            consent.approve(run, locked, by=by or self.owner, digest=digest or call.args_digest)
        return anew(call)

    def reject(self, call: ToolCall, reason: str = "not now") -> ToolCall:
        with transaction.atomic(durable=True):
            run, locked = lock_call(call.pk)
            consent.reject(run, locked, by=self.owner, reason=reason)
        return anew(call)

    def stop(self, run: Run, **more: Any) -> StopRequest:
        return request_stop(run.pk, by=self.owner, **more)

    def pause(self, run: Run, **more: Any) -> Run:
        return pause_run(run.pk, by=self.owner, **more)

    def unpause(self, run: Run) -> Run:
        return unpause_run(run.pk, by=self.owner)

    def resume(self, run: Run, **more: Any) -> Run:
        return resume_run(run.pk, by=self.owner, **more)

    def give_back(self, lease: Lease) -> bool:
        return give_back_lease(lease, TEXT)

    def look_up(self, call: ToolCall) -> ToolCall:
        """A look-up that is due now."""
        pass_time(call)
        look_up_call(call.pk)
        return anew(call)

    def sweep(self) -> dict[str, int]:
        return sweep()

    def ring_again(self, run: Run) -> bool:
        """What the sweeper does with a run that has been silent for a while."""
        return ring_again(run.pk)


def now(run: Run) -> Run:
    """The run as the database has it."""
    return Run.objects.get(pk=run.pk)


def anew(call: ToolCall) -> ToolCall:
    """The call as the database has it."""
    return ToolCall.objects.get(pk=call.pk)


def told(call: ToolCall) -> str:
    """What the model is told of the call's fate, without the marks around what others said."""
    words = result_words(anew(call))
    return re.sub(r"<outside (\w+):[^>]*>\n(.*)\n</outside \1>", r"\2", words, flags=re.DOTALL)


def kinds(run: Run) -> list[str]:
    """What the ledger recorded, in order."""
    return list(LedgerEvent.objects.filter(run=run).order_by("seq").values_list("kind", flat=True))


def events(run: Run, kind: str) -> list[LedgerEvent]:
    return list(LedgerEvent.objects.filter(run=run, kind=kind).order_by("seq"))


TIMES: dict[type[Any], tuple[str, ...]] = {
    Run: ("acting_since", "lease_expires_at", "drain_deadline"),
    ToolCall: (
        "claim_expires_at",
        "deadline_at",
        "consent_expires_at",
        "doubted_at",
        "horizon_at",
        "next_lookup_at",
        "next_attempt_at",
    ),
}


def pass_time(row: Run | ToolCall, *, hours: float = 1) -> None:
    """Let every deadline of the row come that much nearer, as if the time had passed.

    The clock that decides is the database's, which no test can move; so the deadlines move.
    """
    kept = type(row).objects.get(pk=row.pk)
    moved = {
        name: at - timedelta(hours=hours)
        for name in TIMES[type(row)]
        if (at := getattr(kept, name)) is not None
    }
    if moved:
        rewrite(type(row).objects.filter(pk=row.pk), **moved)
