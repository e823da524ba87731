"""Play one drill: start the run, act at its points, wait until nothing moves any more."""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agentruns import demo, doorbell, ids
from agentruns.celery import app
from agentruns.drill.errors import DrillError, PointMissed
from agentruns.drill.hands import Apart, Data, Hands, Threads
from agentruns.drill.parent import Parent
from agentruns.drill.points import BEFORE_START, Point
from agentruns.drill.steering import Reached, Steering, kill_worker
from agentruns.models import Agent, Run, StopRequest, ToolCall
from agentruns.models.agent import DEMO
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from compensation.models import Compensation
from compensation.states import LIVING
from tools.world.faults import Fault, Faults

LOOK_EVERY = 0.01  # seconds
PICK_UP_LIMIT = 30.0  # seconds until a worker has begun
SILENCE_LIMIT = 90.0  # seconds without a word in the ledger; a look-up may wait for 64
DELIVERY = 0.3  # seconds for a message that was sent a second time
PAUSE = 0.5  # seconds for which a paused run is left alone
LATECOMERS = 3.0  # seconds in which a point may still be reached once the run is over
AFTERMATH = 1.0  # seconds after Stop and after the end in which something late would show

OWNER, REVIEWER = "drill", "drill-reviewer"
UNANSWERED = "none"
STOPS_UNDO = ("undo:stop", "undo:stopped")


@dataclass(frozen=True)
class Plan:
    """What is to be played. At a point that is named several times, all of it is done, in the
    order of the fields here. `also_at`: what else is done there, first, with the id of the run.
    `gather_at`: whoever comes there waits for `Drill.go_on` before anything else but that is done,
    and `keep_at`, after it, for `Drill.let_go`. The run need not come to the points of `may_miss`.
    `parent`: the scenario of the run that has started it, which goes on from its first token once
    somebody is kept; `play` keeps them until that has failed, and the run is stopped for it.
    """

    scenario: str
    also_at: Mapping[Point, Callable[[str], object]] = field(default_factory=dict)
    gather_at: tuple[Point, ...] = ()
    pause_at: tuple[Point, ...] = ()
    stop_at: tuple[Point, ...] = ()
    stop_undo_at: tuple[Point, ...] = ()
    twice_at: tuple[Point, ...] = ()
    kill_at: tuple[Point, ...] = ()
    keep_at: tuple[Point, ...] = ()
    lose_at: tuple[Point, ...] = ()
    may_miss: frozenset[Point] = frozenset()
    pending: str = StopRequest.Pending.DISCARD
    verdict: str = "approved"  # or rejected, or UNANSWERED
    parent: str = ""
    resumes: bool = False
    undoes: bool = False
    faults: tuple[Fault, ...] = ()

    @property
    def acts(self) -> dict[Point, list[str]]:
        """What is done at each point, in order."""
        named = {
            "also": tuple(self.also_at),
            "gather": self.gather_at,
            "pause": self.pause_at,
            "stop": self.stop_at,
            "stop_undo": self.stop_undo_at,
            "twice": self.twice_at,
            "kill": self.kill_at,
            "keep": self.keep_at,
        }
        points = [point for each in named.values() for point in each if point.is_reached]
        return {p: [act for act, at in named.items() if p in at] for p in dict.fromkeys(points)}

    @property
    def kills_hands(self) -> bool:
        return any(point.of_person for point in self.kill_at)


@dataclass(frozen=True)
class Played:
    """What was done. `answer_ms`: the first Stop, as the one who pressed it waited for it.
    `is_settled`: nothing moves any more, or only a person can move it.
    """

    run_id: str
    answer_ms: float | None
    is_settled: bool
    killed: tuple[tuple[str, int], ...] = ()  # where, and which process
    twice: tuple[tuple[str, str], ...] = ()  # where, and which task
    lost: dict[str, int] = field(default_factory=dict)  # from where, how many doorbells
    refused: tuple[str, ...] = ()  # what could not be done, as a person is told


@dataclass
class Station:
    """A held point: what is still to be done with whoever comes there."""

    point: Point
    to_do: list[str]
    reached: Reached | None = None
    begun: Callable[[], bool] | None = None
    granted: set[str] = field(default_factory=set)
    is_done: bool = False

    @property
    def only_keeps(self) -> bool:
        """Whether nothing is left to do but to keep them."""
        return self.to_do == ["keep"]


def play(plan: Plan) -> Played:
    """Play it to its end. Raises DrillError, with the run stopped, if it cannot be played."""
    hands = Apart() if plan.kills_hands else Threads()
    try:
        with Drill(plan, hands) as drill:
            while not drill.step(run := Run.objects.get(pk=drill.run_id)):
                if not drill.awaits_parent(run):
                    drill.let_go()
                time.sleep(LOOK_EVERY)
            time.sleep(AFTERMATH)
            return drill.played()
    finally:
        hands.close()


class Drill:
    """One drill on its way: `step` it until it is over. Use it as a context."""

    def __init__(self, plan: Plan, hands: Hands) -> None:
        self.plan = plan
        self.run_id = ids.run_id()
        self.stations = [Station(point, acts) for point, acts in plan.acts.items()]
        self.presses: list[Future[Data]] = []
        self._hands = hands
        self._steering = Steering(self.run_id)
        self._parent = Parent() if plan.parent else None
        self._asked: list[Future[Data]] = []
        self._decided: set[str] = set()
        self._killed: list[tuple[str, int]] = []
        self._twice: list[tuple[str, str]] = []
        self._to_come = [
            verb for verb, on in (("resume", plan.resumes), ("undo", plan.undoes)) if on
        ]
        self._is_rung = False
        self._resumed_from = 0
        self._is_settled = True
        self._since: dict[str, float] = {}
        self._alive = _Watch(PICK_UP_LIMIT)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close(is_given_up=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(is_given_up=error is not None)

    def step(self, run: Run) -> bool:
        """Do what is to be done now; True once nothing moves any more, or nobody can move it.

        Raises DrillError if the run was never picked up, or never came to one of the points.
        """
        self._ring()
        for station in self.stations:
            self._serve(station)
        if self._parent and self._is_kept():
            self._parent.let_go()
        if run.is_active:
            self._decide()
        if run.suspended_reason == "paused":
            self._unpause(run)
        if self._is_busy() or not _is_over(run):
            self._since.pop("waiting", None)
            return self._is_stuck(run)
        if run.is_active and not self._has_been("waiting", LATECOMERS):
            return False  # for a person, or for a late report
        if self._to_come:
            verb = self._to_come.pop(0)
            self._resumed_from = run.epoch
            details: dict[str, Any] = {"epoch": run.epoch} if verb == "resume" else {}
            self._ask(verb, **details)
            return False
        run = Run.objects.get(pk=run.pk)  # what was asked for has been done since it was read
        return _is_over(run) and not self._lacks_time_for(self._missed())

    def close(self, *, is_given_up: bool = False) -> None:
        """Take all holds away; leave no run behind that still acts."""
        self._steering.clear()
        if is_given_up and Run.objects.filter(pk=self.run_id).exists():
            request_stop(self.run_id, by=_owner(), reason="The drill was given up.")
        if self._parent:
            self._parent.close(by=_owner())

    def waits_at(self, point: Point, to: str) -> bool:
        """Whether somebody waits at the point to go on ("gather") or to be let go ("keep")."""
        return any(s.point == point and s.reached and s.to_do[:1] == [to] for s in self.stations)

    def has_passed(self, point: Point) -> bool:
        """Whether all has been done at the point."""
        return any(each.point == point and each.is_done for each in self.stations)

    def awaits_parent(self, run: Run) -> bool:
        """Whether its parent may still fail, and the run be stopped for it."""
        return run.is_active and self._parent is not None and self._parent.may_fail()

    def go_on(self) -> None:
        """Have everything else done with those who were gathered."""
        for station in self.stations:
            station.granted.add("gather")

    def let_go(self, *, but: Collection[Point] = ()) -> None:
        """Let go whoever is kept, now and from now on."""
        for station in self.stations:
            if station.point not in but:
                station.granted.add("keep")

    def played(self) -> Played:
        """What was done, once it is over."""
        answers = [each.result() for each in self._asked if each.done()]
        pressed = [each.result() for each in self.presses if each.done()]
        lost = {point.text: self._steering.lost(point) or 0 for point in self.plan.lose_at}
        return Played(
            self.run_id,
            answer_ms=pressed[0].get("took_ms") if pressed else None,
            is_settled=self._is_settled,
            killed=tuple(self._killed),
            twice=tuple(self._twice),
            lost=lost,
            refused=tuple(each["refused"] for each in answers if "refused" in each),
        )

    # --- The start -------------------------------------------------------------------------------
    def _start(self) -> None:
        plan = self.plan
        for station in self.stations:
            self._steering.hold(station.point)
        for point in plan.lose_at:
            self._steering.lose(point)
        for fault in plan.faults:
            Faults(settings.WORLD_DIR).add(fault)
        agent, owner = _agent_of(plan.scenario), _owner()
        demo.person(REVIEWER, "Drill", "Reviewer", reviews=True)
        if self._parent:
            self._parent.start(owner=owner, agent=_agent_of(plan.parent))
        self._epoch = start_run(
            owner=owner,
            agent=agent,
            goal=agent.example_goal,
            run_id=self.run_id,
            parent_id=self._parent.run_id if self._parent else None,
            ring=False,
        ).epoch
        if any(point.text == BEFORE_START for point in plan.stop_at):
            self._press()

    def _ring(self) -> None:
        """Before the start this doorbell is late: whoever hears it must find nothing to do."""
        if not self._is_rung and all(press.done() for press in self.presses):
            self._is_rung = True
            doorbell.ring_task("agentruns.tasks.think", self.run_id, self._epoch)

    def _is_kept(self) -> bool:
        """Whether anybody has come to a point at which the plan keeps them."""
        return any(s.reached for s in self.stations if s.point in self.plan.keep_at)

    # --- At a point ------------------------------------------------------------------------------
    def _serve(self, station: Station) -> None:
        """Do what is to be done at a point, one thing after the other; then let go."""
        if station.is_done:
            return
        station.reached = station.reached or self._steering.at(station.point)
        if station.reached is None:
            return
        while station.to_do and self._has_done(station.to_do[0], station, station.reached):
            station.to_do.pop(0)
            station.begun = None
        if not station.to_do:
            station.is_done = True
            self._steering.release(station.point)

    def _has_done(self, act: str, station: Station, reached: Reached) -> bool:
        if act in ("gather", "keep"):
            return act in station.granted
        if act == "also":
            self.plan.also_at[station.point](self.run_id)
            return True
        if act == "kill":
            kill_worker(reached.pid)
            self._killed.append((station.point.text, reached.pid))
            return True
        if station.begun is None:
            station.begun = self._begin(act, station, reached)
        return station.begun()

    def _begin(self, act: str, station: Station, reached: Reached) -> Callable[[], bool]:
        """Begin an act; returns whether it is done, as a question."""
        if act == "stop":
            return self._press().done
        if act in ("pause", "stop_undo"):
            return self._ask(act).done
        self._twice.append((station.point.text, reached.task))
        if not reached.task:
            return self._again(station.point).done
        app.send_task(reached.task, args=list(reached.args), retry=False)
        until = time.monotonic() + DELIVERY
        return lambda: time.monotonic() > until

    def _press(self) -> "Future[Data]":
        press = self._ask("stop", pending=self.plan.pending)
        self.presses.append(press)
        return press

    def _again(self, point: Point) -> "Future[Data]":
        """Whoever asked asks a second time, while the first time is not over."""
        if point.call is not None:
            call = ToolCall.objects.get(run=self.run_id, number=point.call)
            return self._ask("decide", REVIEWER, call=call.pk, verdict=self.plan.verdict)
        verb = point.text.split(":")[0]
        if verb == "stop":
            return self._ask(verb, pending=self.plan.pending)
        if verb == "resume":
            return self._ask(verb, epoch=self._resumed_from)
        others = {"pause:ended": "unpause"} | dict.fromkeys(STOPS_UNDO, "stop_undo")
        return self._ask(others.get(point.text, verb))

    def _ask(self, verb: str, by: str = OWNER, **details: Any) -> "Future[Data]":
        asked = self._hands.ask(verb, self.run_id, by, **details)
        self._asked.append(asked)
        return asked

    # --- What people do meanwhile ----------------------------------------------------------------
    def _decide(self) -> None:
        """Answer as a reviewer, but not what comes after the stop: it would race with it."""
        is_resumed = self.plan.resumes and "resume" not in self._to_come
        if self.plan.verdict == UNANSWERED or (self.presses and not is_resumed):
            return
        asking = ToolCall.objects.filter(run=self.run_id, state="awaiting_approval")
        if not is_resumed and (last := self._last_call()):
            asking = asking.filter(number__lte=last)
        for pk in asking.values_list("pk", flat=True):
            if pk not in self._decided:
                self._decided.add(pk)
                self._ask("decide", REVIEWER, call=pk, verdict=self.plan.verdict)

    def _last_call(self) -> int | None:
        """The call at which the run is stopped, if it is at a call."""
        return next((point.call for point in self.plan.stop_at if point.call), None)

    def _unpause(self, run: Run) -> None:
        """Let a paused run go on, once what was under way has had time to report."""
        is_quiet = not (self._is_busy() or run.lease_holder)
        is_quiet = is_quiet and not ToolCall.objects.filter(run=run, state="in_flight").exists()
        if is_quiet and self._has_been("paused", PAUSE):
            self._ask("unpause")

    # --- Whether it is over ----------------------------------------------------------------------
    def _is_busy(self) -> bool:
        """Whether somebody is held, or waits for an answer, or an undo is under way."""
        at_work = any(station.reached and not station.is_done for station in self.stations)
        return (
            at_work
            or not self._is_rung
            or not all(each.done() for each in self._asked)
            or (self.plan.undoes and self._is_undoing())
        )

    def _is_undoing(self) -> bool:
        return Compensation.objects.filter(call__run=self.run_id, state__in=LIVING).exists()

    def _is_stuck(self, run: Run) -> bool:
        if self._alive.hears(run):
            return False
        if run.status == "queued":
            raise DrillError(_("No worker has picked the run up. Are they running?"))
        self._is_settled = False
        return True

    def _missed(self) -> list[Point]:
        missed = [each.point for each in self.stations if not (each.is_done or each.only_keeps)]
        missed += [p for p in self.plan.lose_at if self._steering.lost(p) is None]
        return [point for point in missed if point not in self.plan.may_miss]

    def _lacks_time_for(self, missed: list[Point]) -> bool:
        """Whether the run may still come to these points; DrillError once it has had its time."""
        if not missed:
            return False
        if self._has_been("over", LATECOMERS):
            run = Run.objects.get(pk=self.run_id)
            raise PointMissed(
                _("The run never came to %(point)s. It made %(calls)d calls and ended: %(status)s.")
                % {
                    "point": ", ".join(point.text for point in missed),
                    "calls": ToolCall.objects.filter(run=run).count(),
                    "status": run.status,
                }
            )
        return True

    def _has_been(self, what: str, seconds: float) -> bool:
        return time.monotonic() - self._since.setdefault(what, time.monotonic()) > seconds


class _Watch:
    """Whether a run still says something: its ledger grows, or its model writes."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._heard: object = None
        self._at = time.monotonic()

    def hears(self, run: Run) -> bool:
        heard = (run.status, run.ledger_seq, run.lease_expires_at)
        if heard != self._heard:
            self._heard, self._at = heard, time.monotonic()
            self._limit = PICK_UP_LIMIT if run.status == "queued" else SILENCE_LIMIT
        return time.monotonic() - self._at < self._limit


def _is_over(run: Run) -> bool:
    """Ended, or waiting for a person; and no look-up is still to come.

    The run was read before its calls: a doubt that was resolved in between has set it going again.
    """
    if not (run.has_ended or run.suspended_reason == "dependency"):
        return False
    doubts = ToolCall.objects.filter(run=run, state="in_doubt")
    lookups = list(doubts.values_list("next_lookup_at", flat=True))
    if any(lookups):
        return False
    return run.has_ended or bool(lookups)


def _owner() -> User:
    return demo.person(OWNER, "Drill", "Owner")


def _agent_of(scenario: str) -> Agent:
    # By its model, too: a drill must not spend money at a provider that somebody chose since.
    agent = Agent.objects.filter(slug=scenario, model=f"{DEMO}{scenario}").first()
    if agent is None:
        raise DrillError(
            _("There is no agent that plays “%(name)s” here. Run: manage.py load_demo")
            % {"name": scenario}
        )
    return agent
