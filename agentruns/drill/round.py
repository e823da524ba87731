"""A round of drills: every scenario to its end and undone, and stopped where it begins to act."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.db import connections

from agentruns.drill.errors import DrillError
from agentruns.drill.play import Plan, play
from agentruns.drill.points import point
from agentruns.drill.report import has_passed, report_of
from agentruns.models import LedgerEvent
from tools.contract import Tier
from tools.world import scenarios
from tools.world.scenarios import Scenario

AT_ONCE = 3  # scenarios
IN_PROSE = "token:2"


@dataclass(frozen=True)
class Result:
    """How one drill ended. `groups` counts the calls; `undone` how many of the done were taken
    back; `why` says why it has not passed, "" if it has.
    """

    scenario: str
    stop_at: str
    run_id: str
    status: str
    groups: dict[str, int]
    undone: int
    why: str


def play_round() -> Iterator[Result]:
    """Play every scenario; the results by its name."""
    by_name = sorted(scenarios.load_all().items())
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="drill") as pool:
        for results in pool.map(_play_each, [scenario for _name, scenario in by_name]):
            yield from results


def _play_each(scenario: Scenario) -> list[Result]:
    """To its end, and all of it undone; then stopped, wherever that is worth while."""
    try:
        whole = _play(Plan(scenario.name, undoes=True))
        stops = [IN_PROSE, *_first_effect(whole.run_id), *scenario.stop_at]
        plans = [Plan(scenario.name, stop_at=(point(text),), undoes=True) for text in stops]
        return [whole, *(_play(plan) for plan in plans)]
    finally:
        connections.close_all()


def _first_effect(run_id: str) -> list[str]:
    """The gate of the first call that acted, if any did."""
    passed = LedgerEvent.objects.filter(run=run_id, kind="call.commit_allowed").order_by("seq")
    acting = passed.exclude(data__tier=Tier.READ_ONLY)
    numbers = acting.values_list("call__number", flat=True)
    return [f"call:{number}:gate" for number in numbers[:1]]


def _play(plan: Plan) -> Result:
    stop_at = " ".join(each.text for each in plan.stop_at)
    try:
        report = report_of(plan, play(plan))
    except DrillError as error:
        return Result(plan.scenario, stop_at, "", "", {}, 0, str(error))
    groups = report["groups"]
    undone = sum(call["undo"] == "undone" for call in groups["done"])
    counts = {name: len(found) for name, found in groups.items()}
    run_id, status = report["run_id"], report["status"]
    return Result(plan.scenario, stop_at, run_id, status, counts, undone, _why(report))


def _why(report: dict[str, Any]) -> str:
    if has_passed(report):
        return ""
    found = [str(each) for each in (*report["leaked"], *report["breaches"])]
    return "; ".join(found) if report["is_settled"] else "it did not come to rest"
