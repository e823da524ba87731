"""The run that has started the drilled one: what becomes of a child when its parent fails."""

from django.contrib.auth.models import User

from agentruns import ids
from agentruns.drill.points import Point
from agentruns.drill.steering import Steering
from agentruns.models import Agent, Run
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop

FIRST_TOKEN = Point("token:1")


class Parent:
    """It is held at its first token until `let_go`. `close` it at the end."""

    def __init__(self) -> None:
        self.run_id = ids.run_id()
        self._steering = Steering(self.run_id)

    def start(self, *, owner: User, agent: Agent) -> None:
        """Start it, so that it can have a child."""
        self._steering.hold(FIRST_TOKEN)
        start_run(owner=owner, agent=agent, goal=agent.example_goal, run_id=self.run_id)

    def let_go(self) -> None:
        """Let it go to its end."""
        self._steering.release(FIRST_TOKEN)

    def may_fail(self) -> bool:
        """Whether it has failed, or still may without anybody's help."""
        status = Run.objects.values_list("status", flat=True).get(pk=self.run_id)
        return status in ("queued", "running", "failed")

    def close(self, *, by: User) -> None:
        """Take the hold away, and stop it if it has not ended."""
        self._steering.clear()
        run = Run.objects.filter(pk=self.run_id).first()
        if run is not None and run.is_active:
            request_stop(run.pk, by=by, reason="The drill is over.")
