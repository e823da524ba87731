"""R08: at a limit of its budget a run stops, waits for a person, or reads on and wraps up."""

from decimal import Decimal
from typing import Any

import pytest

from agentruns.errors import BadInput, WrongState
from agentruns.models import Agent, Run, StopRequest
from agentruns.planner.history import messages_of, tools_of
from agentruns.protocol.budget import enforce_budget, raise_budget, usage
from agentruns.protocol.gate import claim_call, pass_gate
from agentruns.protocol.lease import Fragment, renew_lease, take_lease
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, events, kinds, now, pass_time

LONG = Fragment("A long answer.", tokens_in=40, tokens_out=60)


def limited(steps: Steps, **terms: Any) -> Steps:
    """The agent has these terms from now on; runs that are under way keep theirs."""
    Agent.objects.filter(pk=steps.agent.pk).update(**terms)
    steps.agent = Agent.objects.get(pk=steps.agent.pk)
    return steps


def test_a_run_keeps_the_terms_that_it_began_with(steps: Steps) -> None:
    run = limited(steps, token_limit=100).start()
    limited(steps, token_limit=1)
    assert now(run).token_limit == 100


def test_tokens_stop_the_model_in_the_middle_of_its_answer(steps: Steps) -> None:
    run = limited(steps, token_limit=100).start()
    lease = steps.think(run)
    assert renew_lease(lease, Fragment("A", tokens_in=40, tokens_out=59))
    assert now(run).status == "running"

    renew_lease(lease, LONG)

    assert not renew_lease(lease, LONG)
    stop = StopRequest.objects.get(run=run)
    assert (stop.signal, stop.reason, stop.pending) == ("budget", "token_limit", "freeze")
    assert stop.requested_by is None


def test_cost_counts_what_was_written_at_the_agents_price(steps: Steps) -> None:
    terms = {"cost_limit": Decimal("0.001"), "price_per_million_tokens": Decimal(10)}
    run = limited(steps, **terms).start()
    lease = steps.think(run)
    renew_lease(lease, Fragment("A", tokens_out=99))
    assert usage(now(run)).cost == Decimal("0.00099")
    renew_lease(lease, Fragment("A", tokens_out=100))
    assert StopRequest.objects.get(run=run).reason == "cost_limit"


def test_calls_beyond_the_limit_do_not_pass_the_gate_and_are_kept(
    steps: Steps, outside: Outside
) -> None:
    run, (first, second) = limited(steps, call_limit=1).running("test.book", "test.post")
    assert steps.act(first).state == "landed"

    assert steps.act(second).state == "frozen"

    assert [tool for tool, _key in outside.effects] == ["test.book"]
    assert (now(run).status, StopRequest.objects.get(run=run).reason) == (
        "stopped_clean",
        "call_limit",
    )


def test_time_at_work_is_noticed_by_the_sweeper(steps: Steps) -> None:
    run, (call,) = limited(steps, time_limit=600).running("test.book")
    steps.sweep()
    assert now(run).status == "running"

    pass_time(run)
    steps.sweep()

    assert StopRequest.objects.get(run=run).reason == "time_limit"
    assert anew(call).state == "frozen"


def test_time_in_which_a_person_is_waited_for_does_not_count(steps: Steps) -> None:
    """L5: an hour before the approval, of ten minutes' work."""
    run, (call,) = limited(steps, time_limit=600).running("test.send")
    assert now(run).suspended_reason == "approval"
    pass_time(run)
    steps.sweep()
    assert now(run).status == "suspended"

    steps.approve(call)
    assert steps.act(call).state == "landed"

    assert usage(now(run)).seconds < 60
    pass_time(run)
    assert usage(now(run)).seconds > 3600, "at work again, it counts again"


def test_time_in_which_a_run_is_paused_does_not_count(steps: Steps) -> None:
    """L5."""
    run, (call,) = limited(steps, time_limit=600).running("test.book")
    steps.pause(run)
    pass_time(run)
    steps.sweep()
    assert now(run).suspended_reason == "paused"

    steps.unpause(run)
    assert steps.act(call).state == "landed"
    assert usage(now(run)).seconds < 60


def test_time_in_which_a_run_was_stopped_does_not_count(steps: Steps) -> None:
    """L5: nor does what it had worked before the stop count for nothing."""
    run, (call,) = limited(steps, time_limit=7000).running("test.book")
    pass_time(run)
    steps.stop(run, pending="freeze")
    assert now(run).status == "stopped_clean"
    pass_time(run)
    assert 3600 < usage(now(run)).seconds < 3700

    steps.resume(run)
    assert steps.act(call).state == "landed"
    assert 3600 < usage(now(run)).seconds < 3700

    pass_time(run)
    steps.sweep()
    assert StopRequest.objects.filter(run=run).first().reason == "time_limit"


def test_a_run_that_waits_goes_on_once_the_limit_is_raised(steps: Steps, outside: Outside) -> None:
    run, (first, second) = limited(steps, call_limit=1, on_limit="wait").running(
        "test.book", "test.post"
    )
    steps.act(first)
    assert steps.act(second).state == "approved", "held, and not refused"
    assert (now(run).status, now(run).suspended_reason) == ("suspended", "budget")
    assert claim_call(second.pk, epoch=now(run).epoch) is None

    with pytest.raises(BadInput):
        raise_budget(run.pk, by=steps.owner, call_limit=1)
    raise_budget(run.pk, by=steps.owner, call_limit=2)

    assert steps.act(second).state == "landed"
    assert events(run, "budget.raised")[0].data["after"] == {"call_limit": "2"}


def test_a_run_that_wraps_up_only_reads(steps: Steps, outside: Outside) -> None:
    run, (first, second) = limited(steps, call_limit=1, on_limit="degrade").running(
        "test.book", "test.post"
    )
    steps.act(first)
    assert steps.act(second).state == "denied"
    assert anew(second).reason == "budget_exhausted"

    lease = steps.think(run)
    assert now(run).degraded_at is not None
    assert {tool.name for tool in tools_of(now(run))} == {"test__note"}
    assert "budget of this run is used up" in str(messages_of(now(run))[-1])
    read = steps.propose(lease, "test.note")
    assert steps.act(read).state == "landed"
    effect = steps.propose(lease, "test.book", "something else")
    steps.finish(lease)
    assert steps.act(effect).state == "denied"


def test_wrapping_up_has_an_end_too(steps: Steps) -> None:
    run = limited(steps, token_limit=10, on_limit="degrade").start()
    for _turn in range(3):
        lease = steps.think(run)
        steps.propose(lease, "test.unknown")
        assert steps.finish(lease)
    assert kinds(run).count("run.degraded") == 1

    assert take_lease(run.pk, epoch=now(run).epoch) is None

    assert StopRequest.objects.get(run=run).signal == "budget"


def test_a_run_that_was_stopped_for_its_budget_needs_a_higher_limit_to_go_on(
    steps: Steps,
) -> None:
    run, (first, second) = limited(steps, call_limit=1).running("test.book", "test.post")
    steps.act(first)
    steps.act(second)

    with pytest.raises(WrongState, match="budget"):
        steps.resume(run)

    raise_budget(run.pk, by=steps.owner, call_limit=None)
    steps.resume(run)
    assert steps.act(second).state == "landed"


def test_a_pause_outlasts_a_limit(steps: Steps) -> None:
    run, _calls = limited(steps, time_limit=600, on_limit="wait").running("test.book")
    pass_time(run)
    steps.pause(run)
    assert enforce_budget(run.pk)
    assert now(run).suspended_reason == "paused"

    steps.unpause(run)
    steps.sweep()
    assert now(run).suspended_reason == "budget"


def test_a_call_that_a_limit_stops_at_the_gate_never_passes_it(steps: Steps) -> None:
    run, (first, second) = limited(steps, call_limit=1).running("test.book", "test.post")
    steps.act(first)
    claim = steps.claim(second)
    assert not pass_gate(claim)
    assert kinds(run).count("call.commit_allowed") == 1


def test_limits_are_named(steps: Steps) -> None:
    run: Run = steps.start()
    with pytest.raises(BadInput):
        raise_budget(run.pk, by=steps.owner, patience=3)
