"""The report as a table in Markdown, which reads well in a terminal, too."""

from collections.abc import Iterator
from typing import Any

Data = dict[str, Any]

SERIES = {
    "call": "one durable call of ours: claim, gate, outcome",
    "call bells": "… its doorbells, after the commits",
    "intent": "the call written down before, while the answer streams",
    "intent bells": "… its doorbells, after the commit",
    "dbos": "one DBOS step",
    "langgraph": "one LangGraph node, Postgres checkpointer, durability “sync”",
    "answer": "Stop answered",
    "no_new_effect": "no new effect possible",
    "http": "Stop answered, over HTTP",
}
LEDGERS = {"empty": "empty ledger", "full": "long ledger"}


def lines_of(report: Data) -> Iterator[str]:
    yield from _machine(report["machine"])
    yield ""
    yield from _head("", "what", "ledger", "n", "median ms", "p99 ms")
    for ledger, series in report["calls"].items():
        for name, label in SERIES.items():
            if name in series:
                yield _row("a" if ledger == "empty" else "d", label, ledger, series[name])
    for ledger, by_active in report["stops"].items():
        for active, found in by_active.items():
            for name, series in found["figures"].items():
                label = f"{SERIES[name]}, {active} active"
                yield _row("b" if ledger == "empty" else "d", label, ledger, series)
    if report["closing"]:
        closing = report["closing"]["figures"]["closed"]
        yield _row("c", "doorbell to the provider's connection closed", "empty", closing)
    yield ""
    yield from _loads(report)
    yield ""
    yield from _head("", "ratio", "is", "at most", "")
    for goal in report["goals"]:
        verdict = "reached" if goal["is_reached"] else "**not reached**"
        yield _cells(goal["part"], goal["what"], f"{goal['ratio']:.2f}", goal["limit"], verdict)


def _machine(machine: Data) -> Iterator[str]:
    yield (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gib']} GiB; "
        f"{machine['kernel']}; Python {machine['python']}; PostgreSQL {machine['postgres']}, "
        f"fsync {machine['fsync']}; one page on disk: {machine['fdatasync_ms']} ms"
    )
    yield ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())


def _loads(report: Data) -> Iterator[str]:
    for ledger, by_active in report["stops"].items():
        for active, found in by_active.items():
            load = found["load"]
            yield (
                f"- {active} active, {LEDGERS[ledger]}: meanwhile {load['renewals_per_s']} lease "
                f"renewals and {load['calls_per_s']} calls a second"
            )
    if rows := report["long_ledger"]:
        yield "- long ledger: " + ", ".join(f"{count:,} {name}" for name, count in rows.items())


def _row(part: str, label: str, ledger: str, series: Data) -> str:
    p50, p99 = f"{series['p50_ms']:.2f}", f"{series['p99_ms']:.2f}"
    return _cells(part, label, LEDGERS[ledger], series["n"], p50, p99)


def _head(*names: str) -> Iterator[str]:
    yield _cells(*names)
    yield _cells(*("---" for _ in names))


def _cells(*cells: Any) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"
