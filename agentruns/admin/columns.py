"""List columns that the admins of all our apps share."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import Model
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from agentruns.models import Run
from agentruns.states import Machine

# Our tones, as unfold's colours. Its primary colour is purple, as doubt is with us.
COLOURS = {
    "running": "info",
    "stopping": "warning",
    "done": "success",
    "failed": "danger",
    "doubt": "primary",
}
Column = Callable[[Any, Any], Any]


def badge(machine: Machine) -> Column:
    """The row's state, in its word and its colour."""

    @display(
        description=_("state"),
        ordering=machine.field,
        label={value: COLOURS.get(state.tone, "") for value, state in machine.states.items()},
    )
    def state_badge(admin: Any, row: Any) -> tuple[str, Any]:
        value = getattr(row, machine.field)
        return value, machine.states[value].label

    return state_badge


def run_link(path: str = "run") -> Column:
    """The row's run, by the end of its id; `path` leads from the row to the run."""

    @display(description=_("run"), ordering=path.replace(".", "__"))
    def column(admin: Any, row: Model) -> SafeString:
        run: Any = row
        for name in path.split("."):
            run = getattr(run, name)
        assert isinstance(run, Run)
        address = reverse("admin:agentruns_run_change", args=[run.pk])
        return format_html(
            '<a href="{}" title="{}" class="whitespace-nowrap">…{}</a>',
            address,
            run.pk,
            run.pk[-8:],
        )

    return column


def moment(field: str, description: Any) -> Column:
    """A time to the millisecond, because here the order of things matters."""

    @display(description=description, ordering=field)
    def column(admin: Any, row: Model) -> str | SafeString:
        at: datetime | None = getattr(row, field)
        if at is None:
            return "–"
        return format_html('<span class="whitespace-nowrap">{}</span>', at_exactly(at))

    return column


def to_the_minute(at: datetime | None) -> str:
    """Date and time, where the order of things does not matter; "–" for none."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M}" if at else "–"


def at_exactly(at: datetime | None) -> str:
    """Date and time to the millisecond; "–" for none."""
    if at is None:
        return "–"
    local = timezone.localtime(at)
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03d}"
