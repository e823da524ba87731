"""A soak's report for people at a terminal."""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agentruns.soak.truth import ZEROS, has_passed

Data = dict[str, Any]
# In the order of printing; what is not here is in the JSON only.
LABELS = {
    "seed": gettext_lazy("seed"),
    "minutes": gettext_lazy("minutes"),
    "runs": gettext_lazy("runs"),
    "child_runs": gettext_lazy("of them started by another run"),
    "stops": gettext_lazy("stops"),
    "stops_too_late": gettext_lazy("stops after the run had ended"),
    "resumed": gettext_lazy("resumed from a stop"),
    "kills": gettext_lazy("workers killed"),
    "restarts": gettext_lazy("servers killed or restarted"),
    "blows": gettext_lazy("each of these"),
    "given_up": gettext_lazy("processes that did not come back"),
    "calls": gettext_lazy("calls"),
    "passed_the_gate": gettext_lazy("passed the gate"),
    "tried_again": gettext_lazy("tried again"),
    "gate_refusals": gettext_lazy("refused by the gate"),
    "late_writes_refused": gettext_lazy("late writes refused"),
    "in_doubt": gettext_lazy("in doubt, and how it ended"),
    "undone": gettext_lazy("undone"),
    "stop_answer_ms": gettext_lazy("answer to Stop, ms"),
    "settle_ms": gettext_lazy("from Stop to rest, ms"),
    "people": gettext_lazy("what people and trouble did"),
    "cut_short": gettext_lazy("runs stopped for the end"),
    "runs_by_status": gettext_lazy("runs at the end"),
    "calls_by_state": gettext_lazy("calls at the end"),
}
WIDTH = 34


def lines_of(report: Data) -> Iterator[str]:
    """The report, line by line; the verdict last."""
    for name, label in LABELS.items():
        if name in report:
            yield f"{label!s:<{WIDTH}}{_text(report[name])}"
    yield ""
    for finding in report["findings"]:
        yield f"{finding['kind'].upper()} {finding['run_id'] or '–'}: {finding['what']}"
        yield from (f"    {line}" for line in finding["ledger"])
    yield "  ".join(f"{name} {report[name]}" for name in ZEROS)
    if has_passed(report):
        yield _("Nothing leaked, nothing lost, nothing doubled, nothing stuck.")
    else:
        yield _("To plan the same again: manage.py soak --seed %(seed)s") % {"seed": report["seed"]}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(value) or "–"
    return "–" if value is None else str(value)
