"""A soak's report for people at a terminal."""

from collections.abc import Iterator
from typing import Any

from agentruns.soak.truth import ZEROS, has_passed

Data = dict[str, Any]
# Told by other lines, or too much for a terminal: see --json.
LEFT_OUT = (*ZEROS, "findings", "events")


def lines_of(report: Data) -> Iterator[str]:
    """The report, line by line; the verdict last."""
    for name, value in report.items():
        if name not in LEFT_OUT:
            yield f"{name:<28}{_text(value)}"
    events = report["events"]
    yield f"{'late writes refused':<28}{events.get('write.rejected_late', 0)}"
    yield f"{'tried again':<28}{events.get('call.postponed', 0)}"
    yield ""
    for finding in report["findings"]:
        yield f"{finding['kind'].upper()} {finding['run_id'] or '–'}: {finding['what']}"
        yield from (f"    {line}" for line in finding["ledger"])
    yield "  ".join(f"{name} {report[name]}" for name in ZEROS)
    if has_passed(report):
        yield "Nothing leaked, nothing lost, nothing doubled, nothing stuck."
    else:
        yield f"To play it again: manage.py soak --seed {report['seed']}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(value) or "–"
    return str(value)
