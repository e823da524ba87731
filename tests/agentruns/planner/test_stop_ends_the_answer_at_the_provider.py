"""The provider's own record says when it stopped generating (B13, B15)."""

from collections.abc import Callable

from pytest_django.fixtures import Settings

from agentruns.models import Output, Run
from tests.agentruns.planner.conftest import Play, drive
from tests.agentruns.steps import Steps, events, now
from tests.pausing import Pauses, in_background
from tools.world.scenarios import Pause, Say

HOUR = Pause(3600)
NOWHERE = "redis://127.0.0.1:1"


def stopped_while_driven(steps: Steps, run: Run, it_is_time: Callable[[], object]) -> Run:
    """The run, stopped as soon as `it_is_time` returns, once its driver has noticed."""
    with in_background(drive, steps, run) as driving:
        it_is_time()
        steps.stop(run)
        driving.result(timeout=20)
    return now(run)


def test_before_the_first_token_the_request_is_closed_and_nothing_is_kept(
    steps: Steps, play: Play
) -> None:
    """B15, E12."""
    provider = play((HOUR, Say("Hello.")))
    run = stopped_while_driven(steps, steps.start(), provider.begun)
    ended = provider.ended()
    assert (ended.end, ended.token_times) == ("closed_by_client", [])
    assert run.status == "stopped_clean"
    assert Output.objects.get(run=run).text == ""


def test_in_the_middle_it_is_closed_and_the_fragment_is_kept_as_incomplete(
    steps: Steps, play: Play, pauses: Pauses
) -> None:
    """B13, E9."""
    provider = play((Say("I will look. "), HOUR, Say("Later.")))
    run = steps.start()
    third_token = pauses.hold(run.pk, "token:3")
    third_token.release()
    run = stopped_while_driven(steps, run, third_token.wait)
    ended = provider.ended()
    assert ended.end == "closed_by_client"
    assert run.status == "stopped_clean"
    output = Output.objects.get(run=run)
    assert (output.text, output.status) == ("I will look. ", "incomplete")
    assert output.tokens_out == len(ended.token_times) == 3
    assert len(events(run, "generation.stopped")) == 1


def test_if_the_doorbell_is_lost_the_next_heartbeat_tells(
    steps: Steps, play: Play, settings: Settings
) -> None:
    """Redis is away the whole time."""
    layer = settings.CHANNEL_LAYERS["default"]
    settings.CHANNEL_LAYERS = {
        "default": layer | {"CONFIG": layer["CONFIG"] | {"hosts": [NOWHERE]}}
    }
    provider = play((HOUR, Say("Hello.")))
    run = stopped_while_driven(steps, steps.start(), provider.begun)
    assert provider.ended().end == "closed_by_client"
    assert run.status == "stopped_clean"
