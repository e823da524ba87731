"""The axes of the stop matrix, as data: boundaries × disturbances × tiers × what Stop leaves."""

from dataclasses import dataclass
from enum import StrEnum

from tools.contract import Tier


class Who(StrEnum):
    """Who stands at a boundary: what a kill there kills."""

    THINK = "think"
    ACT = "act"
    CONTROL = "control"
    PERSON = "person"


class Mode(StrEnum):
    """What Stop, pressed at the boundary, leaves of the calls that have not started; or that it
    is the undo which is stopped there.
    """

    DISCARD = "discard"
    FREEZE = "freeze"
    STOP_UNDO = "stop_undo"
    NO_STOP = "no_stop"


class Disturbance(StrEnum):
    """What goes wrong at the boundary."""

    NOTHING = "nothing"
    KILL = "kill"
    TWICE = "twice"
    LOST = "lost"
    REDIS = "redis"
    POSTGRES = "postgres"
    SLOW = "slow"
    TIMEOUT = "timeout"
    ERROR = "error"
    LATE = "late"
    LATER = "later"

    @property
    def of_world(self) -> bool:
        """Whether it is the outside system that goes wrong."""
        own = (Disturbance.SLOW, Disturbance.TIMEOUT, Disturbance.ERROR)
        return self in own or self.is_late

    @property
    def is_late(self) -> bool:
        """Whether it acts once its caller has given up."""
        return self in (Disturbance.LATE, Disturbance.LATER)


TIERS = tuple(Tier)

MODE_WORDS = {
    Mode.DISCARD: "Stop, and drop what has not started",
    Mode.FREEZE: "Stop, and keep what has not started",
    Mode.STOP_UNDO: "the undo is stopped, and nothing else",
    Mode.NO_STOP: "no Stop here: the run goes on",
}
DISTURBANCE_WORDS = {
    Disturbance.NOTHING: ("Stop alone", "nothing else goes wrong"),
    Disturbance.KILL: ("kill -9", "of the process that stands there"),
    Disturbance.TWICE: ("redelivery", "the message is delivered, or the request sent, again"),
    Disturbance.LOST: ("lost doorbell", "whatever is rung from there to the next point is lost"),
    Disturbance.REDIS: ("Redis restart", "SIGKILL, and all queues are gone"),
    Disturbance.POSTGRES: ("Postgres restart", "SIGKILL, and crash recovery"),
    Disturbance.SLOW: ("slow outside", "the outside system answers two seconds late"),
    Disturbance.TIMEOUT: ("acts, time-out", "the outside system acts, and does not answer in time"),
    Disturbance.ERROR: ("acts, 500", "the outside system acts, and answers with an error"),
    Disturbance.LATE: ("acts late", "the outside system hangs up, and acts before its horizon"),
    Disturbance.LATER: ("acts too late", "it hangs up, and acts when that is over"),
}


class World(StrEnum):
    """When a boundary's call is sent, seen from the boundary: where a fault of the world fits."""

    NOT_ASKED = ""  # between the boundary and the end of the cell nothing is sent for it
    BEFORE = "before"  # it has been sent when the boundary is reached
    AFTER = "after"  # it is sent after the boundary, also if the run is stopped there


@dataclass(frozen=True)
class Way:
    """What leads a run to a boundary, besides running: the fields of a drill's plan.

    `fault`: what the world does wrong with call 1. `stalls_at`: whoever comes there stays until
    the cell is let go. `time_limit`: seconds that the run may take. `parent`: the scenario of the
    run that has started it, and fails once somebody stays.
    """

    stop_at: str = ""
    stop_undo_at: str = ""
    pause_at: str = ""
    lose_at: tuple[str, ...] = ()
    stalls_at: str = ""
    fault: str = ""
    is_unanswered: bool = False
    resumes: bool = False
    undoes: bool = False
    time_limit: int = 0
    parent: str = ""


@dataclass(frozen=True)
class Boundary:
    """One boundary: its point, who stands there, what leads there, and what is special."""

    point: str
    who: Who
    way: Way = Way()
    world: World = World.NOT_ASKED
    has_ended: bool = False  # Stop at it finds nothing that it could drop or keep

    @property
    def patience(self) -> float:
        """Seconds for which a run waits at it, before Stop is pressed, for others to come.

        A sweeper does not keep other sweepers from going on; and who stands at it with a lease or
        a claim loses it, after a while.
        """
        if self.who is Who.CONTROL:
            return 0.0
        return 8.0 if self.is_in_flight else 4.0

    @property
    def is_in_flight(self) -> bool:
        """Whether a call or an undo is out while somebody stands there: its time runs."""
        return self.world is not World.NOT_ASKED

    @property
    def is_between_items(self) -> bool:
        """Whether its call has several items, and some of them are out."""
        return ":item:" in self.point

    @property
    def last_turn(self) -> str:
        """Where the run is kept from ending by itself before Stop is pressed; "" if it may."""
        may_end = self.way.undoes or self.point.startswith("think:2")
        return "" if may_end else "think:2:leased"


def _swept(kind: str, way: Way, **more: bool) -> tuple[Boundary, Boundary]:
    return (
        Boundary(f"sweep:{kind}", Who.CONTROL, way, **more),
        Boundary(f"swept:{kind}", Who.CONTROL, way, **more),
    )


_REFUSED, _BUSY, _CUT = Way(fault="refuse"), Way(fault="busy"), Way(fault="drop")
_PAUSED = Way(pause_at="call:1:gate")
_RESUMED = Way(stop_at="call:1:gate", resumes=True)
_UNDONE = Way(undoes=True)
_UNDO_STOPPED = Way(undoes=True, stop_undo_at="undo:2:started")

BOUNDARIES = (
    Boundary("think:1:leased", Who.THINK),
    Boundary("token:3", Who.THINK),
    Boundary("call:1:proposed", Who.THINK),
    Boundary("call:1:buffered", Who.THINK),
    Boundary("think:1:ended", Who.THINK),
    Boundary("think:1:finished", Who.THINK),
    Boundary("call:1:approved", Who.PERSON),
    Boundary("call:1:claimed", Who.ACT),
    Boundary("call:1:prepared", Who.ACT),
    Boundary("call:1:gate", Who.ACT, world=World.AFTER),
    Boundary("call:1:item:1", Who.ACT, world=World.AFTER),  # for the next item
    Boundary("call:1:sent", Who.ACT, world=World.BEFORE),
    Boundary("call:1:landed", Who.ACT),
    Boundary("call:1:failed", Who.ACT, _REFUSED),
    Boundary("call:1:postponed", Who.ACT, _BUSY),
    Boundary("call:1:doubted", Who.ACT, _CUT),
    Boundary("call:1:lookup", Who.ACT, _CUT),
    Boundary("call:1:looked_up", Who.ACT, _CUT),
    Boundary("call:1:resolved", Who.ACT, _CUT),
    Boundary("think:2:leased", Who.THINK),
    Boundary("think:2:ended", Who.THINK),
    Boundary("pause:begin", Who.PERSON, _PAUSED),
    Boundary("pause:committed", Who.PERSON, _PAUSED),
    Boundary("pause:ended", Who.PERSON, _PAUSED),
    Boundary("stop:begin", Who.PERSON, Way(stop_at="call:1:gate"), World.AFTER),
    Boundary("stop:committed", Who.PERSON, Way(stop_at="call:1:gate"), World.AFTER),
    Boundary("drain:lease", Who.THINK, Way(stop_at="token:3")),
    Boundary("drain:settled", Who.ACT, Way(stop_at="call:1:gate"), World.BEFORE),
    Boundary("resume:begin", Who.PERSON, _RESUMED),
    Boundary("resume:committed", Who.PERSON, _RESUMED),
    Boundary("undo:begin", Who.PERSON, _UNDONE, has_ended=True),
    Boundary("undo:planned", Who.PERSON, _UNDONE, has_ended=True),
    Boundary("undo:2:started", Who.ACT, _UNDONE, World.AFTER, has_ended=True),
    Boundary("undo:2:sent", Who.ACT, _UNDONE, World.BEFORE, has_ended=True),
    Boundary("undo:2:settled", Who.ACT, _UNDONE, has_ended=True),
    Boundary("undo:stop", Who.PERSON, _UNDO_STOPPED, has_ended=True),
    Boundary("undo:stopped", Who.PERSON, _UNDO_STOPPED, has_ended=True),
    *_swept("leases", Way(stalls_at="think:1:leased")),
    *_swept("deadlines", Way(stalls_at="call:1:sent")),
    *_swept("approvals", Way(is_unanswered=True)),
    *_swept("stopping", Way(stop_at="call:1:sent", stalls_at="call:1:sent")),
    # (Its driver keeps its lease there, however long it takes its parent to fail.)
    *_swept("orphans", Way(stalls_at="call:2:proposed", parent="cut-connection")),
    *_swept("budgets", Way(stalls_at="call:1:claimed", time_limit=3)),
    *_swept("retries", Way(fault="busy", lose_at=("call:1:sent",))),
    *_swept("lookups", Way(fault="drop", lose_at=("call:1:sent",))),
    *_swept("silent", Way(lose_at=("call:1:sent", "call:2:sent"))),
    *_swept("undo", Way(undoes=True, lose_at=("undo:begin",)), has_ended=True),
)
