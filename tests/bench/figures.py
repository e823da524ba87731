"""From seconds to figures: medians, p99, ratios, and whether they reach what was aimed at."""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

Times = Mapping[str, list[float]]


@dataclass(frozen=True)
class Figure:
    """`n` measured; milliseconds."""

    n: int
    p50_ms: float
    p99_ms: float


def figure(seconds: list[float]) -> Figure:
    """p99 is the smallest time that at least 99 of 100 did not exceed."""
    ordered = sorted(seconds)
    p99 = ordered[math.ceil(len(ordered) * 0.99) - 1]
    return Figure(len(ordered), _ms(statistics.median(ordered)), _ms(p99))


def figures(times: Times) -> dict[str, Figure]:
    return {name: figure(seconds) for name, seconds in times.items() if seconds}


def pooled(found: Iterable[Times]) -> dict[str, list[float]]:
    """The times of several passes, together."""
    together: dict[str, list[float]] = {}
    for times in found:
        for name, seconds in times.items():
            together.setdefault(name, []).extend(seconds)
    return together


@dataclass(frozen=True)
class Goal:
    """What a ratio is to be at most."""

    part: str
    what: str
    ratio: float
    limit: float

    def as_data(self) -> dict[str, Any]:
        ratio = round(self.ratio, 2)
        return asdict(self) | {"ratio": ratio, "is_reached": ratio <= self.limit}


def goals(
    calls: Mapping[str, list[Times]], stops: Mapping[str, Mapping[int, list[Times]]]
) -> list[Goal]:
    """Every goal of which this bench has measured both sides. Given: the times, pass by pass."""
    found = []
    empty = pooled(calls["empty"])
    if "dbos" in empty:
        ratio = figure(empty["call"]).p50_ms / figure(empty["dbos"]).p50_ms
        found.append(Goal("a", "a call : a DBOS step, median", ratio, 1.0))
    fewest, most = min(stops["empty"]), max(stops["empty"])
    for what in ("answer", "no_new_effect"):
        few, many = (figure(pooled(stops["empty"][n])[what]) for n in (fewest, most))
        name = f"{what.replace('_', ' ')}, p99: {most} active runs : {fewest}"
        found.append(Goal("b", name, many.p99_ms / few.p99_ms, 3.0))
    if "full" in calls:
        name = "a call, long ledger : empty, median"
        found.append(Goal("d", name, _paired(calls["full"], calls["empty"], "call"), 1.2))
        for active, passes in stops["full"].items():
            name = f"stop's answer with {active} active, long ledger : empty, median"
            ratio = _paired(passes, stops["empty"][active], "answer")
            found.append(Goal("d", name, ratio, 1.2))
    return found


def _paired(these: list[Times], those: list[Times], what: str) -> float:
    """The ratio of medians within each pass, and of those the median: the two halves of a pass
    are a minute apart, and the machine's speed drifts more slowly than that.
    """
    pairs = zip(these, those, strict=True)
    return statistics.median(
        statistics.median(a[what]) / statistics.median(b[what]) for a, b in pairs
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
