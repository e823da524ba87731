"""A soak that found something is planned again from its seed; so the plan is all in it."""

from collections import Counter
from itertools import islice

from agentruns.soak import plan

SEED = 11
RUNS = list(islice(plan.runs(SEED, 2.0), 600))


def test_the_same_seed_plans_the_same_and_another_one_does_not() -> None:
    assert list(islice(plan.runs(SEED, 2.0), 600)) == RUNS
    assert list(islice(plan.runs(SEED + 1, 2.0), 600)) != RUNS
    assert list(islice(plan.blows(SEED), 50)) == list(islice(plan.blows(SEED), 50))
    assert list(islice(plan.nuisances(SEED), 50)) == list(islice(plan.nuisances(SEED), 50))
    assert plan.decision(SEED, 3, 1) == plan.decision(SEED, 3, 1)


def test_how_fast_runs_start_changes_nothing_else_about_them() -> None:
    slow, fast = next(plan.runs(SEED, 0.5)), next(plan.runs(SEED, 5.0))
    assert slow.starts_at > fast.starts_at
    assert (slow.presses, slow.pause, slow.agent) == (fast.presses, fast.pause, fast.agent)


def test_everything_that_can_happen_to_a_run_is_planned() -> None:
    assert {run.agent for run in RUNS} == set(plan.AGENTS)
    assert {run.resumes for run in RUNS} == {0, 1, 2}
    assert any(run.parent for run in RUNS)
    assert any(run.pause for run in RUNS)
    assert any(run.silent_at for run in RUNS)
    assert any(not run.rings for run in RUNS)
    presses = [press for run in RUNS for press in run.presses]
    assert {press.pending for press in presses} == {"discard", "freeze"}
    assert {press.kills for press in presses} == {"", "before", "after"}
    assert max(press.times for press in presses) > 1
    assert {press.at for press in presses} == {"", *plan.POINTS}


def test_twenty_minutes_have_the_stops_and_the_kills_that_a_soak_needs() -> None:
    seconds = 20 * 60
    runs = [run for run in islice(plan.runs(SEED, 2.4), 5000) if run.starts_at < seconds]
    assert sum(len(run.presses) for run in runs) > 2800
    blows = Counter(blow.kind for blow in islice(plan.blows(SEED), 1000) if blow.at < seconds)
    assert sum(blows[worker] for worker in plan.KILLS) > 350
    assert blows["postgres"] > 3
    assert blows["valkey"] > 3


def test_what_happens_comes_in_order_of_time() -> None:
    for happening in (plan.blows(SEED), plan.nuisances(SEED)):
        times = [each.at for each in islice(happening, 200)]
        assert times == sorted(times)
