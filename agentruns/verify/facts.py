"""What the checks look at: runs with all that is on record about them, and the scope of a check."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from django.db.models import QuerySet
from pydantic_ai.messages import ModelMessage

from agentruns.models import CallItem, Output, Run, StopRequest, ToolCall
from agentruns.planner.history import TOLD, history
from agentruns.verify.sweeps import Sweeps
from compensation.models import Compensation, UndoRequest
from review.models import Approval


@dataclass(frozen=True)
class Breach:
    """One thing that is not as the protocol says: where, and what."""

    run_id: str
    what: str


# What a check says of one thing that it looked at: nothing, or a breach.
Finding = Breach | None


class Event(NamedTuple):
    """A LedgerEvent as the checks read it. `is_intact`: it still has the hash that it was given."""

    run_id: str
    seq: int
    at: datetime
    kind: str
    call_id: str | None
    actor: str
    data: dict[str, Any]
    sets: dict[str, dict[str, Any]]
    prev_hash: str
    hash: str
    is_intact: bool


@dataclass(frozen=True)
class Facts:
    """One run, with all that is on record about it, as of `now`, by the database's clock."""

    run: Run
    now: datetime
    sweeps: Sweeps
    calls: list[ToolCall] = field(default_factory=list)  # in order of number
    items: list[CallItem] = field(default_factory=list)  # in order of call and position
    events: list[Event] = field(default_factory=list)  # in order of seq
    stops: list[StopRequest] = field(default_factory=list)  # in order of epoch
    outputs: list[Output] = field(default_factory=list)  # in order of turn
    served: list[Output] = field(default_factory=list)  # those that are given out as complete
    undo_requests: list[UndoRequest] = field(default_factory=list)
    undo_steps: list[Compensation] = field(default_factory=list)
    approvals: list[Approval] = field(default_factory=list)

    def breach(self, what: str) -> Breach:
        return Breach(self.run.pk, what)

    def unless(self, holds: bool, what: str) -> Finding:
        """The finding about one thing: fine if it `holds`, else `what`."""
        return None if holds else Breach(self.run.pk, what)

    @cached_property
    def by_call(self) -> dict[str | None, list[Event]]:
        """The events of each call, in order; those of no call under None."""
        found: dict[str | None, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.call_id].append(event)
        return found

    @cached_property
    def history(self) -> list[ModelMessage]:
        """What the run's model would be sent now, from the rows that were read."""
        calls = sorted(self.calls, key=lambda call: (call.turn, call.position))
        told = [(event.kind, event.data["turn"]) for event in self.events if event.kind in TOLD]
        return history(self.run, self.served, calls, told)


@dataclass(frozen=True)
class Scope:
    """What to look at: runs and effects since a moment; a world, if there is one. `expect`: the
    head of the chain of heads that somebody has kept, if anybody has.
    """

    since: datetime | None = None
    world_dir: Path | None = None
    run_ids: tuple[str, ...] = ()
    expect: str = ""

    def runs(self) -> QuerySet[Run]:
        runs = Run.objects.order_by("pk")
        if self.since is not None:
            runs = runs.filter(created_at__gte=self.since)
        return runs.filter(pk__in=self.run_ids) if self.run_ids else runs
