"""I6: what people read of each row is what the events say that was set."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from django.db import models

from agentruns.models.shown import Shown, is_as_said
from agentruns.verify.facts import Facts, Finding

# A row: the call whose events tell of it (None: the run's own), and its name.
Name: TypeAlias = tuple[str | None, str]

OF_A_CALL = ("call", "item:")


def rows_are_as_recorded(facts: Facts) -> Iterator[Finding]:
    """Each row with shown columns, and each row that the ledger tells of."""
    said = _said(facts)
    for row, call_id in _rows(facts):
        shown: Shown = type(row).SHOWN  # type: ignore[attr-defined]
        known = said.pop((call_id, shown.name(row)), {})
        wrong = [name for name in shown.columns if not is_as_said(row, name, known.get(name))]
        what = f"{row._meta.model_name} {row.pk}: not what was recorded: {', '.join(wrong)}"
        yield facts.unless(not wrong, what)
    turns = {f"output:{output.turn}" for output in facts.outputs if output.status == "streaming"}
    for call_id, name in said:
        if name not in turns:
            yield facts.breach(f"{f'{name} of {call_id}' if call_id else name} is gone")


def _said(facts: Facts) -> dict[Name, dict[str, Any]]:
    """What the events say last of each column."""
    said: dict[Name, dict[str, Any]] = {}
    for event in facts.events:
        for name, columns in event.sets.items():
            call_id = event.call_id if name.startswith(OF_A_CALL) else None
            said.setdefault((call_id, name), {}).update(columns)
    return said


def _rows(facts: Facts) -> Iterator[tuple[models.Model, str | None]]:
    """Each row that is to be as the events say. A text that is being written is told of at its
    end, the answer of a stop once it is given.
    """
    yield facts.run, None
    for call in facts.calls:
        yield call, call.pk
    for item in facts.items:
        yield item, item.call_id
    yield from ((output, None) for output in facts.outputs if output.status != "streaming")
    for rows in (facts.stops, facts.undo_requests, facts.undo_steps, facts.approvals):
        yield from ((row, None) for row in rows)
