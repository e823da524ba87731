"""What the model knows: one run, its calls, its workers, and what is really in the world.

Rows are immutable and hashable, so that a state is one value. State names and transitions are
those of `agentruns.states`: a name that is gone there is a KeyError here.
"""

from typing import NamedTuple

from agentruns.states import CALL, OUTPUT, RUN, SUSPENDED_REASONS, Machine

FREE = -1  # no worker: a lease, or a claim, that nobody holds
DEAD = 2  # the lease is held, by a worker that is no more


def _named(machine: Machine, *names: str) -> tuple[str, ...]:
    return tuple(machine.states[name].value for name in names)


def _reason(name: str) -> str:
    return next(value for value, _label in SUSPENDED_REASONS if value == name)


QUEUED, RUNNING, SUSPENDED = _named(RUN, "queued", "running", "suspended")
CANCEL_REQUESTED, DRAINING = _named(RUN, "cancel_requested", "draining")
STOPPED_CLEAN, STOPPED_DIRTY = _named(RUN, "stopped_clean", "stopped_dirty")
APPROVAL, PAUSED, DEPENDENCY = _reason("approval"), _reason("paused"), _reason("dependency")

BUFFERED, AWAITING, APPROVED, PREPARED = _named(
    CALL, "buffered", "awaiting_approval", "approved", "prepared"
)
IN_FLIGHT, LANDED, FAILED, IN_DOUBT = _named(CALL, "in_flight", "landed", "failed", "in_doubt")
FROZEN = CALL.states["frozen"].value
READY = (APPROVED, PREPARED)

STREAMING, COMPLETE, INCOMPLETE = _named(OUTPUT, "streaming", "complete", "incomplete")

# What a worker is in the middle of. It does one task at a time, as a Celery process does.
IDLE = "idle"
DRIVING = "streams the model"  # think: between two tokens
CLAIMED = "has a claim"  # act: the call is its own, nothing has left the house
LET_THROUGH = "passed the gate"  # act: about to send
SENT = "waits for the outside"  # act: it may or may not have happened
REFUSED = "was refused"  # act: the outside said that it did not do it
EXECUTING = (CLAIMED, LET_THROUGH, SENT, REFUSED)
FOUND, MISSING = "found it", "found nothing"  # look_up: the outside was asked


class Run(NamedTuple):
    """`lease` is the worker that may write for the driver; `text` is that of the latest turn."""

    status: str = RUN.initial
    reason: str = ""
    epoch: int = 1
    turn: int = 0
    lease: int = FREE
    text: str = ""
    stops: tuple[int, ...] = ()  # StopRequests, by the epoch that each began (or came too late in)
    is_resumed: bool = False


class Call(NamedTuple):
    """`claim` is the worker whose token the row has. The last four are facts of the world:
    the call's own time has run out; so has its outside's, to act on what was sent; a request of it
    is under way; effects that it had.
    """

    state: str = CALL.initial
    is_read: bool = False
    epoch: int = 1
    turn: int = 1
    claim: int = FREE
    attempts: int = 0
    is_answered: bool = False  # by a person, who may be wrong
    is_overdue: bool = False
    is_past: bool = False
    under_way: int = 0
    effects: int = 0


class Worker(NamedTuple):
    """What one worker has in its memory, and loses when it dies."""

    task: str = IDLE
    call: int = FREE
    epoch: int = 0
    is_fenced: bool = False  # its lease was taken away; it does not know


class State(NamedTuple):
    run: Run
    calls: tuple[Call, ...]
    workers: tuple[Worker, ...]


class Move(NamedTuple):
    """One row taken through one transition. A model may try what is illegal: I7 finds it."""

    machine: Machine
    verb: str
    source: str

    @property
    def target(self) -> str:
        return self.machine.verbs[self.verb].target


class Transaction:
    """A state that is being changed. What `change` does not touch stays as it was; `moves` are
    the transitions made, for I7.
    """

    __slots__ = ("calls", "moves", "run", "workers")

    def __init__(self, state: State) -> None:
        self.run = state.run
        self.calls = list(state.calls)
        self.workers = list(state.workers)
        self.moves: list[Move] = []

    def state(self) -> State:
        return State(self.run, tuple(self.calls), tuple(self.workers))

    def save_run(self, **fields: object) -> None:
        self.run = self.run._replace(**fields)  # type: ignore[arg-type]

    def save_call(self, n: int, **fields: object) -> None:
        self.calls[n] = self.calls[n]._replace(**fields)  # type: ignore[arg-type]

    def move_run(self, verb: str, **fields: object) -> None:
        move = Move(RUN, verb, self.run.status)
        self.moves.append(move)
        self.save_run(status=move.target, **fields)

    def move_call(self, n: int, verb: str, **fields: object) -> None:
        move = Move(CALL, verb, self.calls[n].state)
        self.moves.append(move)
        self.save_call(n, state=move.target, **fields)

    def move_text(self, verb: str) -> None:
        move = Move(OUTPUT, verb, self.run.text)
        self.moves.append(move)
        self.save_run(text=move.target)

    def becomes(self, i: int, task: str, call: int = FREE, epoch: int = 0) -> None:
        """Worker `i` goes on with this in its memory and nothing else."""
        self.workers[i] = Worker(task, call, epoch)
