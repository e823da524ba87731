"""A drill stops at the Nth token of a run, and the page says how many there were."""

from agentruns.models import Output
from tests.agentruns.planner.conftest import Play, drive
from tests.agentruns.steps import Steps, now
from tests.pausing import Pauses
from tools.world.provider_record import model_requests
from tools.world.scenarios import Call, Say


def test_tokens_of_prose_and_of_calls_are_counted_through_all_turns(
    steps: Steps, play: Play, pauses: Pauses
) -> None:
    search = Call("mail.search", {"query": "Q3 review", "limit": 5})
    provider = play((Say("First I look. "), search, Say("A moment. ")), (Say("That is all."),))
    run = steps.start()
    drive(steps, run)
    [call] = run.calls.all()
    steps.act(call)
    drive(steps, now(run))
    generated = [len(request.token_times) for request in model_requests(provider.world_dir)]
    assert list(Output.objects.filter(run=run).values_list("tokens_out", flat=True)) == generated
    points = [point for _run, point in pauses.passed if point.startswith("token:")]
    assert points == [f"token:{n}" for n in range(1, sum(generated) + 1)]
