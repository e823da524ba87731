"""A drill's report for people at a terminal."""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agentruns.drill.report import has_passed
from agentruns.states import CALL, GROUPS, RUN
from tools.models import TIER_LABELS

Data = dict[str, Any]
FOUND = {
    "Receipt": gettext_lazy("a look-up found that it had happened"),
    "NotLanded": gettext_lazy("a look-up found that it had not happened"),
    "Unknown": gettext_lazy("a look-up could not tell"),
    None: gettext_lazy("only a person can say"),
}
TOOL_WIDTH, SUMMARY_WIDTH = 27, 58


def lines_of(report: Data) -> Iterator[str]:
    """The report, line by line; the verdict last."""
    yield _("“%(scenario)s”, stop at: %(point)s. %(label)s.") % {
        "scenario": report["scenario"],
        "point": report["stop_at"],
        "label": RUN.states[report["status"]].label,
    }
    yield report["run_id"]
    yield ""
    yield from _stop(report)
    yield from _groups(report["groups"])
    yield from _world(report["world"])
    yield from _verdict(report)


def _stop(report: Data) -> Iterator[str]:
    stop, tokens = report["stop"], report["tokens"]
    if stop is not None:
        yield _(
            "Stop    answered in %(answer)s; no new effect after %(gate)s; settled after %(safe)s"
        ) % {
            "answer": _ms(stop["answer_ms"]),
            "gate": _ms(stop["no_new_effect_ms"]),
            "safe": _ms(stop["safe_stop_ms"]),
        }
        yield _(
            "Model   cut off after %(closed)s; tokens after Stop: %(after)d, "
            "later than 250 ms: %(late)d"
        ) % {
            "closed": _ms(stop["generation_closed_ms"]),
            "after": tokens["after_stop"],
            "late": tokens["after_stop_250ms"],
        }
    yield _("Tokens  %(generated)d generated, %(shown)d shown as text") % tokens
    if parent := report["parent"]:
        label = RUN.states[parent["status"]].label
        yield _("Parent  “%(scenario)s”, %(run_id)s: %(label)s") % (parent | {"label": label})
    for killed in report["killed"]:
        yield _("Killed  process %(pid)s at %(at)s") % killed
    for twice in report["twice"]:
        task = twice["task"] or _("by hand")
        yield _("Twice   at %(at)s, %(task)s") % {"at": twice["at"], "task": task}
    for at, bells in report["lost"].items():
        yield _("Lost    at %(at)s, %(bells)d doorbells") % {"at": at, "bells": bells}
    for sentence in report["refused"]:
        yield _("Refused %(sentence)s") % {"sentence": sentence}
    for call in report["doubts"]:
        yield _("Doubt   %(tool)s was in doubt; %(found)s") % {
            "tool": call["tool"],
            "found": FOUND[call["found"]],
        }
    yield ""


def _groups(groups: Data) -> Iterator[str]:
    for name, title in GROUPS.items():
        yield f"{title}: {len(groups[name])}"
        for call in groups[name]:
            undo = _undo(call)
            summary = call["summary"]
            if len(summary) > SUMMARY_WIDTH:
                summary = summary[: SUMMARY_WIDTH - 1] + "…"
            yield f"  {call['tool']:<{TOOL_WIDTH}}{summary:<{SUMMARY_WIDTH}}  {undo}".rstrip()
    yield ""


def _undo(call: Data) -> Any:
    """What can be done about a call, in its tier's words; of one that never landed, its state."""
    if call["undo"] == "undone":
        return _("undone")
    return TIER_LABELS[call["tier"]] if call["undo"] else CALL.states[call["state"]].label


def _world(world: Data) -> Iterator[str]:
    counts = ", ".join(f"{tool} {len(found)}" for tool, found in sorted(world.items()))
    yield _("In the world: %(counts)s") % {"counts": counts or _("nothing")}
    yield ""


def _verdict(report: Data) -> Iterator[str]:
    for leak in report["leaked"]:
        yield _("LEAKED: call %(call)s. %(why)s") % leak
    for breach in report["breaches"]:
        yield _("DISAGREES (%(invariant)s): %(what)s") % breach
    if not report["is_settled"]:
        yield _("The run did not come to rest.")
    if has_passed(report):
        yield _("Ledger and world agree. Nothing leaked.")


def _ms(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"
