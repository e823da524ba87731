"""The answer: each turn's text with its calls, and a plain mark on what is incomplete."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html
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
    """One turn's text, in pieces (prose.py). While it is being written (`is_open`), `start` is how
    many characters of it they show; a page puts whatever comes after that into the tail.
    """

    output: int
    html: list[str]
    start: int
    is_open: bool
    cut: str

    @property
    def has_text(self) -> bool:
        return any(self.html)

    @property
    def place(self) -> str:
        """Stands for the pieces while the rest of the section is drawn."""
        return f"{prose.OPEN}output-{self.output}{prose.CLOSE}"

    def pieces(self) -> dict[str, str]:
        """Each piece as an element of the page, by its id."""
        found = {}
        for number, html in enumerate(self.html):
            name = f"output-{self.output}-{number}"
            is_last = self.is_open and number == len(self.html) - 1
            open_ = f' data-output="{self.output}" data-start="{self.start}"' if is_last else ""
            place = f'id="{name}" class="piece" data-in="output-{self.output}"{open_}'
            found[name] = f"<div {place}>{html}</div>"
        return found


@dataclass(frozen=True)
class Answer:
    """All passages in order; `empty` says so if there is nothing to read."""

    passages: list[Passage]
    empty: str

    def pieces(self) -> dict[str, str]:
        """The elements that the text consists of, by their ids, in order."""
        return {name: html for each in self.passages for name, html in each.pieces().items()}

    def filled(self, outline: str) -> str:
        """The section's outline, as its template draws it, with the text in it."""
        for passage in self.passages:
            outline = outline.replace(passage.place, "".join(passage.pieces().values()))
        return outline


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
    shown = [p for p in passages if p.has_text or p.cut or p.is_open]
    said = any(p.has_text for p in passages)
    return Answer(passages=shown, empty="" if said else _nothing(run))


def _passage(
    run: Run, output: Output, calls: list[ToolCall], stop: StopRequest | None, viewer: object
) -> Passage:
    is_open = output.status == OUTPUT.initial and run.is_active
    is_held = run.suspended_reason in HELD
    chips = [_chip(call, is_held=is_held) for call in calls]
    start = len(output.text.rstrip()) if is_open else len(output.text)
    html = []
    if output.text.strip() or chips:
        html = prose.pieces(output.text[:start], chips, key=output.pk)
    if is_open:
        html = [*html[:-1], _with_tail("".join(html[-1:]), output.text[start:])]
    cut = "" if is_open else _cut(output, stop, viewer) if any(html) else _never_began(output)
    return Passage(output.pk, html, start, is_open, cut)


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
