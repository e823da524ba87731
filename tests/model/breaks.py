"""Deliberate breaks: the protocol with a guard taken out, or with a thing done as others do it.

Each must make the check fail. A guard that nobody misses guards nothing, and a check that misses
nobody checks nothing. Where two guards stand behind each other (`SECOND_DOORS`), taking out one
alone must *not* be noticed, and taking out both must.
"""

from typing import NamedTuple

from agentruns.states import ACTIVE_RUN, STOPPING_RUN
from tests.model.protocol import Protocol
from tests.model.rows import FREE, IN_FLIGHT, READY, REFUSED, Call, Transaction
from tests.model.scopes import EFFECTS, PAUSE, READ_AND_EFFECT, RESUME, UNIT, Scope
from tests.model.steps import Choices, Steps


class Break(NamedTuple):
    """`against` is the invariant that it breaches, as is seen in `scope`."""

    name: str
    words: str
    against: str
    scope: Scope
    broken: type[Protocol] | type[Steps]

    def steps(self) -> Steps:
        if issubclass(self.broken, Steps):
            return self.broken(Protocol(self.scope))
        return Steps(self.broken(self.scope))


# --- the gate -------------------------------------------------------------------------------------
class GateWithoutStatus(Protocol):
    def is_running(self, tx: Transaction) -> bool:
        return True


class GateWithoutEpoch(Protocol):
    def is_of_this_epoch(self, tx: Transaction, n: int) -> bool:
        return True


class RetryWithoutEpoch(Protocol):
    def may_still_act(self, tx: Transaction, n: int) -> bool:
        return tx.run.status in ACTIVE_RUN


class NobodyComparesEpochs(GateWithoutEpoch, RetryWithoutEpoch):
    pass


class GateTrustsTheClaim(GateWithoutStatus, GateWithoutEpoch):
    def is_claimed_by(self, tx: Transaction, n: int, i: int) -> bool:
        return tx.calls[n].claim == i


class ClaimNotExclusive(Protocol):
    def is_claimed_by(self, tx: Transaction, n: int, i: int) -> bool:
        return tx.calls[n].state in (*READY, IN_FLIGHT)

    def is_keyed(self, tx: Transaction, n: int, i: int) -> bool:
        return tx.calls[n].state == IN_FLIGHT


class RetrySkipsTheGate(Steps):
    def of_executor(self, now: Transaction, i: int, task: str) -> Choices:
        yield from super().of_executor(now, i, task)
        if task == REFUSED:
            yield "send", now.workers[i].call, lambda tx: self.protocol.send(tx, i)


# --- outcomes and doubt ---------------------------------------------------------------------------
class BlindResend(Protocol):
    def doubt(self, tx: Transaction, n: int) -> None:
        if tx.calls[n].state == IN_FLIGHT and self.may_still_act(tx, n):
            tx.move_call(n, "postpone", claim=FREE)
        else:
            super().doubt(tx, n)


class FailedInsteadOfDoubt(Protocol):
    def doubt(self, tx: Transaction, n: int) -> None:
        self.fail(tx, n)


class LookupBelievedTooSoon(Protocol):
    def is_final(self, call: Call) -> bool:
        return True


class NoHorizon(Protocol):
    def is_final(self, call: Call) -> bool:
        return call.is_overdue


class SendsHoweverLate(Protocol):
    def is_in_time(self, tx: Transaction, n: int) -> bool:
        return True


class PostponesAfterStop(Protocol):
    def may_still_act(self, tx: Transaction, n: int) -> bool:
        return True


# --- stop and drain -------------------------------------------------------------------------------
class StopLeavesCallsWaiting(Protocol):
    def drop_waiting(self, tx: Transaction, verb: str) -> None:
        pass


class EveryPressIsAStop(Protocol):
    def is_stop_known(self, tx: Transaction) -> bool:
        return False


class SettlesWithCallsInFlight(Protocol):
    def is_in_flight(self, tx: Transaction) -> bool:
        return False


class SettlesWhileStreaming(Protocol):
    def has_driver(self, tx: Transaction) -> bool:
        return False


class NoSweeper(Steps):
    def of_sweeper(self, now: Transaction) -> Choices:
        yield from ()


class SweeperLeavesLeases(Steps):
    def of_sweeper(self, now: Transaction) -> Choices:
        return (choice for choice in super().of_sweeper(now) if choice[0] != "sweep_lease")


# --- atomic units ---------------------------------------------------------------------------------
class StopCutsUnits(Protocol):
    def has_begun(self, tx: Transaction) -> bool:
        return False


class UnitLetsAnyStepThrough(Protocol):
    def may_finish(self, tx: Transaction, n: int) -> bool:
        return self.scope.is_unit and tx.run.status in STOPPING_RUN


# --- leases and turns -----------------------------------------------------------------------------
class HolderIsAHostName(Protocol):
    def holds_lease(self, tx: Transaction, i: int) -> bool:
        return tx.run.lease != FREE


class LateFinisherOverwrites(Protocol):
    def is_ours(self, tx: Transaction, i: int) -> bool:
        return True


class TakeOverKeepsTheBuffer(Protocol):
    def drop_turn(self, tx: Transaction) -> None:
        pass


class ResumeReleasesACutAnswer(Protocol):
    def was_whole(self, tx: Transaction) -> bool:
        return True


BREAKS = (
    Break(
        "gate-without-status",
        "The gate does not ask whether the run is running.",
        "I1",
        PAUSE,
        GateWithoutStatus,
    ),
    Break(
        "nobody-compares-epochs",
        "Neither the gate nor a retry asks whether the call is of the run's epoch.",
        "I1",
        READ_AND_EFFECT,
        NobodyComparesEpochs,
    ),
    Break(
        "gate-trusts-the-claim",
        "What held when the call was claimed is not looked at again at the gate.",
        "I1",
        EFFECTS,
        GateTrustsTheClaim,
    ),
    Break(
        "retry-skips-the-gate",
        "Back-off inside the executor: what was let through once is sent again.",
        "I1",
        EFFECTS,
        RetrySkipsTheGate,
    ),
    Break(
        "unit-lets-any-step-through",
        "While a begun unit is finished, any step of it may go, not only the next.",
        "I1",
        UNIT,
        UnitLetsAnyStepThrough,
    ),
    Break(
        "claim-not-exclusive",
        "Neither the gate nor the record of an outcome asks whose claim it is.",
        "I2",
        EFFECTS,
        ClaimNotExclusive,
    ),
    Break(
        "blind-resend",
        "No answer: send it again.",
        "I2",
        EFFECTS,
        BlindResend,
    ),
    Break(
        "failed-instead-of-doubt",
        "No answer: it failed.",
        "I2",
        EFFECTS,
        FailedInsteadOfDoubt,
    ),
    Break(
        "lookup-believed-too-soon",
        "“It is not there” is believed while the request may still be under way.",
        "I2",
        EFFECTS,
        LookupBelievedTooSoon,
    ),
    Break(
        "no-horizon",
        "“It is not there” is believed once the call's own time is over: no outside is slow.",
        "I2",
        EFFECTS,
        NoHorizon,
    ),
    Break(
        "sends-however-late",
        "An executor that was held up after the gate sends when it wakes up.",
        "I2",
        EFFECTS,
        SendsHoweverLate,
    ),
    Break(
        "postpones-after-stop",
        "A call that could be tried again goes back to wait, though the run was stopped.",
        "I4",
        EFFECTS,
        PostponesAfterStop,
    ),
    Break(
        "stop-leaves-calls-waiting",
        "Stop drops nothing: the gate will refuse it anyway.",
        "I4",
        EFFECTS,
        StopLeavesCallsWaiting,
    ),
    Break(
        "settles-with-calls-in-flight",
        "A run is called stopped before its calls have reported.",
        "I4",
        EFFECTS,
        SettlesWithCallsInFlight,
    ),
    Break(
        "every-press-is-a-stop",
        "A second Stop does not find the first.",
        "I5",
        EFFECTS,
        EveryPressIsAStop,
    ),
    Break(
        "late-finisher-overwrites",
        "A driver that ends its turn does not ask whether the run is still its own.",
        "I7",
        EFFECTS,
        LateFinisherOverwrites,
    ),
    Break(
        "no-sweeper",
        "Whatever a dead worker or a lost message leaves lying stays there.",
        "I10",
        EFFECTS,
        NoSweeper,
    ),
    Break(
        "sweeper-leaves-leases",
        "A lease is given back, or never ends.",
        "I10",
        EFFECTS,
        SweeperLeavesLeases,
    ),
    Break(
        "take-over-keeps-the-buffer",
        "What a lost driver had buffered is not dropped.",
        "I10",
        EFFECTS,
        TakeOverKeepsTheBuffer,
    ),
    Break(
        "settles-while-streaming",
        "The row says stopped at once, and the worker works on.",
        "§4",
        EFFECTS,
        SettlesWhileStreaming,
    ),
    Break(
        "holder-is-a-host-name",
        "Both workers are on one host: a zombie passes for its heir.",
        "§4",
        EFFECTS,
        HolderIsAHostName,
    ),
    Break(
        "resume-releases-a-cut-answer",
        "What the stop kept is released, though its answer never ended.",
        "§6",
        RESUME,
        ResumeReleasesACutAnswer,
    ),
    Break(
        "stop-cuts-units",
        "Stop drops what a begun unit still lacks.",
        "§9",
        UNIT,
        StopCutsUnits,
    ),
)

SECOND_DOORS = (
    Break(
        "gate-without-epoch",
        "The gate does not compare epochs; a retry does.",
        "I1",
        READ_AND_EFFECT,
        GateWithoutEpoch,
    ),
    Break(
        "retry-without-epoch",
        "A retry does not compare epochs; the gate does.",
        "I1",
        READ_AND_EFFECT,
        RetryWithoutEpoch,
    ),
    Break(
        "status-at-stop",
        "The gate does not ask for the status: but Stop has dropped what waited.",
        "I1",
        EFFECTS,
        GateWithoutStatus,
    ),
)
