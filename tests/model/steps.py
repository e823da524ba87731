"""Who can do what next. Each step is one transaction of the code, or one effect outside of it.

There is no queue in the model. A worker may act on any message at any moment, whether it was sent
or not; who can bear that can bear messages that are lost, doubled, late or out of order. And there
is no clock: any lease, claim, question or drain may run out at any moment. Two deadlines alone are
kept, those of an effect, because guards rest on them: once its own time is over, nothing of it is
sent; and its outside's horizon is over only after that, when nothing that was sent can still be on
its way.

A worker may die between any two steps, and forgets everything. Whether it ever comes back is then
only a matter of whether it acts again, so being dead needs no state of its own.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from agentruns.states import ACTIVE_RUN, CALL, STOPPING_RUN
from tests.model.protocol import Protocol
from tests.model.rows import (
    APPROVED,
    AWAITING,
    CLAIMED,
    DRIVING,
    FAILED,
    FOUND,
    FREE,
    IDLE,
    IN_DOUBT,
    IN_FLIGHT,
    LET_THROUGH,
    MISSING,
    PAUSED,
    REFUSED,
    RUNNING,
    SENT,
    STOPPED_CLEAN,
    Call,
    State,
    Transaction,
)

OUTSIDE, CLOCK, SWEEPER, PERSON = "the outside", "the clock", "the sweeper", "a person"

# A deed that can be done now, the call that it is about, and what it changes.
Choice = tuple[str, int, Callable[[Transaction], None]]
Choices = Iterator[Choice]


class Step(NamedTuple):
    """One edge of the state graph. `who` is a worker's number or one of the names above."""

    who: int | str
    deed: str
    n: int
    before: State
    tx: Transaction
    is_of_unit: bool

    @property
    def after(self) -> State:
        return self.tx.state()

    @property
    def passes_gate(self) -> bool:
        moves = self.tx.moves
        return any(move.machine is CALL and move.target == IN_FLIGHT for move in moves)


class Steps:
    """The steps of a protocol from any state. A break may take some away, or add some."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.people = protocol.scope.people

    def of(self, state: State) -> Iterator[Step]:
        now = Transaction(state)  # to look at only
        for who, choices in self._choices(now):
            for deed, n, act in choices:
                tx = Transaction(state)
                act(tx)
                yield Step(who, deed, n, state, tx, self.protocol.scope.is_unit)

    def _choices(self, now: Transaction) -> Iterator[tuple[int | str, Choices]]:
        for i, worker in enumerate(now.workers):
            yield i, self.of_worker(now, i, worker.task)
        yield OUTSIDE, self.of_outside(now)
        yield CLOCK, self.of_clock(now)
        yield SWEEPER, self.of_sweeper(now)
        yield PERSON, self.of_people(now)

    # --- workers ------------------------------------------------------------------------------
    def of_worker(self, now: Transaction, i: int, task: str) -> Choices:
        """The next step of the task that worker `i` is in the middle of; or it dies."""
        if task == IDLE:
            yield from self.of_idle(now, i)
            return
        if task == DRIVING:
            yield from self.of_driver(now, i)
        elif task in (FOUND, MISSING):
            act = partial(self.protocol.record_lookup, i=i, is_found=task == FOUND)
            yield "looked_up", now.workers[i].call, act
        else:
            yield from self.of_executor(now, i, task)
        yield "dies", FREE, partial(Transaction.becomes, i=i, task=IDLE)

    def of_idle(self, now: Transaction, i: int) -> Choices:
        p = self.protocol
        if p.may_take_lease(now):
            yield "take_lease", FREE, partial(p.take_lease, i=i)
        for n, call in enumerate(now.calls):
            if p.may_claim(now, n):
                yield "claim", n, partial(p.claim_call, n=n, i=i)
            # What a person says did not happen is looked for all the same.
            is_looked_for = call.state == IN_DOUBT or (call.state == FAILED and call.is_answered)
            if is_looked_for and call.effects:
                yield "look_up", n, partial(Transaction.becomes, i=i, task=FOUND, call=n)
            elif call.state == IN_DOUBT and p.is_final(call):
                yield "look_up", n, partial(Transaction.becomes, i=i, task=MISSING, call=n)

    def of_driver(self, now: Transaction, i: int) -> Choices:
        p = self.protocol
        if not p.is_ours(now, i):
            yield "give_back", FREE, partial(p.give_back_lease, i=i)
            return
        if len(now.calls) < len(p.scope.tools):
            yield "propose", len(now.calls), p.propose_call
        yield "finish", FREE, partial(p.finish_turn, i=i)
        yield "break", FREE, partial(p.break_turn, i=i)

    def of_executor(self, now: Transaction, i: int, task: str) -> Choices:
        p, n = self.protocol, now.workers[i].call
        if task == CLAIMED:
            has_draft = not p.scope.tools[n].drafts or now.calls[n].state != APPROVED
            if has_draft:
                yield "gate", n, partial(p.pass_gate, i=i)
            else:
                yield "draft", n, partial(p.keep_draft, i=i)
        elif task == LET_THROUGH and p.is_in_time(now, n):
            yield "send", n, partial(p.send, i=i)
        elif task == LET_THROUGH:
            yield "too_late", n, partial(p.record_failed, i=i)
        elif task == SENT:
            if now.calls[n].effects:
                yield "landed", n, partial(p.record_landed, i=i)
            yield "doubted", n, partial(p.record_doubt, i=i)
        if task in (CLAIMED, REFUSED):  # trouble in its preparation, or an outside that refused
            yield "failed", n, partial(p.record_failed, i=i)
            yield "postponed", n, partial(p.record_postponed, i=i)

    # --- everybody else -------------------------------------------------------------------------
    def of_outside(self, now: Transaction) -> Choices:
        for n, call in enumerate(now.calls):
            if call.under_way:
                yield "arrives", n, partial(arrive, n=n)
                yield "vanishes", n, partial(vanish, n=n)
                for i, worker in enumerate(now.workers):
                    if worker.task == SENT and worker.call == n:
                        yield "refuses", n, partial(refuse, n=n, i=i)

    def of_clock(self, now: Transaction) -> Choices:
        for n, call in enumerate(now.calls):
            is_open = call.state in (IN_FLIGHT, IN_DOUBT) and not call.is_read
            if is_open and not call.is_overdue:
                yield "overdue", n, partial(Transaction.save_call, n=n, is_overdue=True)
            elif is_open and not call.is_past and not call.under_way:
                yield "horizon", n, partial(Transaction.save_call, n=n, is_past=True)

    def of_sweeper(self, now: Transaction) -> Choices:
        p = self.protocol
        if now.run.lease != FREE:
            yield "sweep_lease", FREE, p.take_away_lease
        for n, call in enumerate(now.calls):
            if p.may_expire_call(now, n):
                yield "sweep_call", n, partial(p.doubt, n=n)
            if call.state == AWAITING:
                yield "sweep_consent", n, partial(p.decide, n=n, verb="expire")
        if now.run.status in STOPPING_RUN:
            yield "sweep_drain", FREE, p.begin_drain
            if p.has_unfinished(now):
                yield "sweep_unit", FREE, p.freeze_unfinished
        elif now.run.status == RUNNING and now.run.turn:
            yield "sweep_silent", FREE, p.advance

    def of_people(self, now: Transaction) -> Choices:
        p, run = self.protocol, now.run
        yield "stop", FREE, partial(p.request_stop, verb="void")
        if "freeze" in self.people:
            yield "stop_freeze", FREE, partial(p.request_stop, verb="freeze")
        if "pause" in self.people and run.status in ACTIVE_RUN and run.reason != PAUSED:
            yield "pause", FREE, p.pause_run
        if run.reason == PAUSED:
            yield "unpause", FREE, p.unpause_run
        if "resume" in self.people and run.status == STOPPED_CLEAN and not run.is_resumed:
            yield "resume_release", FREE, partial(p.resume_run, verb="approve")
            yield "resume_void", FREE, partial(p.resume_run, verb="void")
        for n, call in enumerate(now.calls):
            yield from self.of_deciders(n, call)

    def of_deciders(self, n: int, call: Call) -> Choices:
        """A person may be wrong: says of a call in doubt whatever comes to mind."""
        p = self.protocol
        if call.state == AWAITING:
            yield "approve", n, partial(p.decide, n=n, verb="approve")
            yield "reject", n, partial(p.decide, n=n, verb="reject")
        elif call.state == IN_DOUBT and "answer" in self.people:
            yield "happened", n, partial(p.answer, n=n, happened=True)
            yield "did_not", n, partial(p.answer, n=n, happened=False)


# --- the outside: it knows no idempotency key, so every request that arrives is an effect ---------
def arrive(tx: Transaction, n: int) -> None:
    call = tx.calls[n]
    effects = 1 if call.is_read else call.effects + 1
    tx.save_call(n, under_way=call.under_way - 1, effects=effects)


def vanish(tx: Transaction, n: int) -> None:
    tx.save_call(n, under_way=tx.calls[n].under_way - 1)


def refuse(tx: Transaction, n: int, i: int) -> None:
    vanish(tx, n)
    tx.becomes(i, REFUSED, n)
