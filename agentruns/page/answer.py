"""The answer: each turn's text with its calls, and a plain mark on what is incomplete."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from agentruns.models import Output, Run, StopRequest, ToolCall
from agentruns.page import prose
from agentruns.page.moments import stop_after
from agentruns.page.words import call_pill, name_of
from agentruns.protocol.advance import HELD
from agentruns.states import OUTPUT
from tools import registry


@dataclass(frozen=True)
class Passage:
    """One turn's text. While it is being written (`is_open`), `start` is how many characters of
    it `html` shows; a page puts whatever comes after that into the tail.
    """

    output: int
    html: SafeString
    start: int
    is_open: bool
    cut: str


@dataclass(frozen=True)
class Answer:
    """All passages in order; `empty` says so if there is nothing to read."""

    passages: list[Passage]
    empty: str


def answer_of(
    run: Run,
    outputs: list[Output],
    calls: list[ToolCall],
    stops: Sequence[StopRequest],
    viewer: object,
) -> Answer:
    """What the agent has written so far."""
    passages = []
    for output in outputs:
        own = [call for call in calls if call.turn == output.turn]
        stop = stop_after(output.epoch, stops)
        passages.append(_passage(run, output, own, stop, viewer))
    shown = [p for p in passages if p.html or p.cut or p.is_open]
    said = any(p.html for p in passages)
    return Answer(passages=shown, empty="" if said else _nothing(run))


def _passage(
    run: Run, output: Output, calls: list[ToolCall], stop: StopRequest | None, viewer: object
) -> Passage:
    is_open = output.status == OUTPUT.initial and run.is_active
    is_held = run.suspended_reason in HELD
    chips = [_chip(call, is_held=is_held) for call in calls]
    start = len(output.text.rstrip()) if is_open else len(output.text)
    html = prose.render(output.text[:start], chips) if output.text.strip() or chips else ""
    if is_open:
        html = _with_tail(str(html), output.text[start:])
    cut = "" if is_open else _cut(output, stop, viewer) if html else _never_began(output)
    return Passage(output.pk, mark_safe(html), start, is_open, cut)  # noqa: S308  (prose is safe)


def _with_tail(html: str, rest: str) -> str:
    """Where the text goes on: in its last paragraph, or in a new one."""
    tail = format_html(
        '<span class="tail" data-tail>{}</span><span class="caret" aria-hidden="true"></span>', rest
    )
    trimmed = html.rstrip()
    if trimmed.endswith("</p>") and "\n\n" not in rest:
        return f"{trimmed[:-4]}{tail}</p>"
    return f"{html}<p>{tail}</p>"


def _chip(call: ToolCall, *, is_held: bool) -> prose.Chip:
    registered = registry.get(call.tool)
    pill = call_pill(call, is_held=is_held)
    return prose.Chip(
        offset=call.text_offset,
        label=registered.title if registered else call.tool,
        icon=pill.icon,
        tone=pill.tone,
        target=f"call-{call.pk}",
        title=f"{call.in_words}: {pill.label}",
    )


def _cut(output: Output, stop: StopRequest | None, viewer: object) -> str:
    """Why the passage ends where it ends; "" for one that is complete."""
    if output.status == "complete":
        return ""
    if output.status == OUTPUT.initial:
        return _("Being cut off …")
    if output.finish_reason == "stopped":
        if stop is None or stop.requested_by is None:
            return _("Cut off here by Stop. This part is incomplete.")
        if stop.requested_by == viewer:
            return _("Cut off here when you pressed Stop. This part is incomplete.")
        name = name_of(stop.requested_by)
        return _("Cut off here when %(name)s stopped the run. This part is incomplete.") % {
            "name": name
        }
    if output.finish_reason == "worker_lost":
        return _("Cut off here: the worker was lost. This part is incomplete.")
    if output.finish_reason == "answer_length":
        return _("Cut off here: the answer got too long. This part is incomplete.")
    return _("Cut off here: the answer broke off. This part is incomplete.")


def _never_began(output: Output) -> str:
    """A later step that was stopped before its first word; the first one has `empty` for that."""
    if output.finish_reason != "stopped" or output.turn == 1:
        return ""
    return _("Stopped before the next step wrote anything.")


def _nothing(run: Run) -> str:
    if run.status == "queued":
        return _("Nothing yet: the run waits to start.")
    if run.is_active:
        return _("Nothing yet.")
    if run.is_stopping or run.is_stopped:
        return _("Stopped before any output.") if run.is_stopped else _("No output.")
    return _("The agent wrote nothing.")
