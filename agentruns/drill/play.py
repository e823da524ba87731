"""Play one drill: start the run, act at its points, wait until nothing moves any more."""

import time
from dataclasses import dataclass

from django.utils.translation import gettext as _

from agentruns import demo, doorbell, ids
from agentruns.drill.errors import DrillError
from agentruns.drill.points import BEFORE_START, Point
from agentruns.drill.steering import Steering, kill_worker
from agentruns.errors import WrongState
from agentruns.models import Agent, Run, StopRequest, ToolCall
from agentruns.planner.providers import DEMO
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from review.services import decide

LOOK_EVERY = 0.01  # seconds
PICK_UP_LIMIT = 30.0  # seconds until a worker has begun
SILENCE_LIMIT = 90.0  # seconds without a word in the ledger; a look-up may wait for 64
AFTERMATH = 1.0  # seconds after Stop and after the end in which something late would show


@dataclass(frozen=True)
class Plan:
    """What is to be played. `kill_at` may be the point of the stop, or another, or None."""

    scenario: str
    stop_at: Point
    kill_at: Point | None = None
    pending: str = StopRequest.Pending.DISCARD


@dataclass(frozen=True)
class Played:
    """What was done. `answer_ms`: Stop, as the one who pressed it waited for it. `is_settled`:
    nothing moves any more, or only a person can move it.
    """

    run_id: str
    stop: StopRequest | None
    answer_ms: float | None
    killed_pid: int | None
    is_settled: bool


def play(plan: Plan) -> Played:
    """Play it to its end. Raises DrillError, with the run stopped, if it cannot be played."""
    drill = Drill(plan)
    with drill.steering:
        try:
            return drill.play()
        except BaseException:
            drill.give_up()
            raise


class Drill:
    """One drill on its way."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.run_id = ids.run_id()
        self.steering = Steering(self.run_id)
        self.owner = demo.person("drill", "Drill", "Owner")
        self.reviewer = demo.person("drill-reviewer", "Drill", "Reviewer", reviews=True)
        self.stop: StopRequest | None = None
        self.answer_ms: float | None = None
        self.killed_pid: int | None = None
        self._alive = _Watch(PICK_UP_LIMIT)

    def play(self) -> Played:
        """Start, act, wait."""
        self._arm()
        self._start()
        is_settled = self._until_over()
        self._must_have_acted()
        time.sleep(AFTERMATH)
        stop = StopRequest.objects.get(pk=self.stop.pk) if self.stop else None
        return Played(self.run_id, stop, self.answer_ms, self.killed_pid, is_settled)

    def give_up(self) -> None:
        """Leave no run behind that still acts."""
        if Run.objects.filter(pk=self.run_id).exists():
            request_stop(self.run_id, by=self.owner, reason="The drill was given up.")

    def _arm(self) -> None:
        plan = self.plan
        if plan.stop_at.is_reached_by_a_worker:
            self.steering.arm(plan.stop_at)
        if plan.kill_at is not None:
            self.steering.arm(plan.kill_at)

    def _start(self) -> None:
        agent = _agent_of(self.plan.scenario)
        run = start_run(
            owner=self.owner, agent=agent, goal=agent.example_goal, run_id=self.run_id, ring=False
        )
        epoch = run.epoch
        if self.plan.stop_at.text == BEFORE_START:
            self._press()
        # Before the start this doorbell is late: whoever hears it must find nothing to do.
        doorbell.ring_task("agentruns.tasks.think", run.pk, epoch)

    def _until_over(self) -> bool:
        """Act until nothing moves any more; False if something should move and does not."""
        while True:
            run = Run.objects.get(pk=self.run_id)
            if _is_over(run):
                return True
            if not self._alive.hears(run):
                if run.status == "queued":
                    raise DrillError(_("No worker has picked the run up. Are they running?"))
                return False
            self._act()
            time.sleep(LOOK_EVERY)

    def _act(self) -> None:
        stop_at, kill_at = self.plan.stop_at, self.plan.kill_at
        if self.stop is None and stop_at.is_reached_by_a_worker and self.steering.at(stop_at):
            self._press()
        if kill_at is not None and self.killed_pid is None:
            self._kill(kill_at)
        if self.stop is not None and (kill_at != stop_at or self.killed_pid):
            self.steering.release(stop_at)
        if self.stop is None:
            self._approve()

    def _press(self) -> None:
        began = time.perf_counter()
        self.stop = request_stop(
            self.run_id, by=self.owner, reason="drill", pending=self.plan.pending
        )
        self.answer_ms = (time.perf_counter() - began) * 1000

    def _kill(self, kill_at: Point) -> None:
        pid = self.steering.at(kill_at)
        if pid is not None and (self.stop is not None or kill_at != self.plan.stop_at):
            kill_worker(pid)
            self.killed_pid = pid
            self.steering.release(kill_at)

    def _approve(self) -> None:
        """Say yes as a reviewer, but not to what comes after the stop: it would race with it."""
        asking = ToolCall.objects.filter(run=self.run_id, state="awaiting_approval")
        if last := self.plan.stop_at.call:
            asking = asking.filter(number__lte=last)
        for call in asking:
            try:
                decide(call.pk, by=self.reviewer, verdict="approved", digest=call.args_digest)
            except WrongState:  # it ended at this moment, and its end is on record
                continue

    def _must_have_acted(self) -> None:
        missed = []
        if self.stop is None and self.plan.stop_at.is_reached_by_a_worker:
            missed.append(self.plan.stop_at)
        if self.killed_pid is None and self.plan.kill_at is not None:
            missed.append(self.plan.kill_at)
        if missed:
            run = Run.objects.get(pk=self.run_id)
            raise DrillError(
                _("The run never came to %(point)s. It made %(calls)d calls and ended: %(status)s.")
                % {
                    "point": ", ".join(point.text for point in missed),
                    "calls": ToolCall.objects.filter(run=run).count(),
                    "status": run.status,
                }
            )


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
    doubts = ToolCall.objects.filter(run=run, state="in_doubt")
    lookups = list(doubts.values_list("next_lookup_at", flat=True))
    if any(lookups):
        return False
    return run.has_ended or (run.suspended_reason == "dependency" and bool(lookups))


def _agent_of(scenario: str) -> Agent:
    # By its model, too: a drill must not spend money at a provider that somebody chose since.
    agent = Agent.objects.filter(slug=scenario, model=f"{DEMO}{scenario}").first()
    if agent is None:
        raise DrillError(
            _("There is no agent that plays “%(name)s” here. Run: manage.py load_demo")
            % {"name": scenario}
        )
    return agent
