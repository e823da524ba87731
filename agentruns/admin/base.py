"""What the admins of all our apps share: rows to read and not to touch, and states as badges."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import display

from agentruns.states import Machine

# Our tones, as unfold's colours. Its primary colour is purple, as doubt is with us.
COLOURS = {
    "running": "info",
    "stopping": "warning",
    "done": "success",
    "failed": "danger",
    "doubt": "primary",
}


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only services write: nobody adds, changes or deletes them by hand, superusers
    included. The database refuses most of it as well.
    """

    list_per_page = 50
    show_full_result_count = False  # these tables only grow

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def badge(machine: Machine) -> Callable[[Any, Any], tuple[str, Any]]:
    """A list column: the row's state in its word and its colour."""

    @display(
        description=_("state"),
        ordering=machine.field,
        label={value: COLOURS.get(state.tone, "") for value, state in machine.states.items()},
    )
    def state_badge(admin: Any, row: Any) -> tuple[str, Any]:
        value = getattr(row, machine.field)
        return value, machine.states[value].label

    return state_badge
