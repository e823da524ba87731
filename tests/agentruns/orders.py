"""Orders: the tests' atomic unit of three steps, asked for in one turn."""

from agentruns.models import Run, ToolCall
from agentruns.protocol.execute import execute_call
from tests.agentruns.steps import Steps, anew, now

ORDER = ("test.reserve", "test.pay", "test.ship")


def ordered(steps: Steps, *tools: str, what: str = "shoes") -> tuple[Run, list[ToolCall]]:
    """A run whose first turn has asked for these steps (default: all) of one order."""
    run = steps.start()
    lease = steps.think(run)
    calls = [steps.propose(lease, tool, what) for tool in tools or ORDER]
    assert steps.finish(lease)
    return now(run), [anew(call) for call in calls]


def begun(steps: Steps) -> tuple[Run, list[ToolCall]]:
    """An order whose first step has landed."""
    run, calls = ordered(steps)
    steps.act(calls[0])
    return run, calls


def finish(call: ToolCall) -> ToolCall:
    """What the act worker does with the message that rings for a step, in whatever epoch."""
    execute_call(call.pk, epoch=call.epoch)
    return anew(call)


def states(calls: list[ToolCall]) -> list[str]:
    return [anew(call).state for call in calls]
