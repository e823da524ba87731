"""Agents: the one table of the core that people edit."""

from typing import Any

from django import forms
from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from agentruns.models import LIMITS, TERMS, Agent, Checkpoint
from tools import registry
from tools.imports.loader import imported

Before = Checkpoint.Before


def _tool_choices() -> list[tuple[str, str]]:
    return [(item.name, f"{item.name} – {item.title}") for item in (*registry.all(), *imported())]


class AgentForm(forms.ModelForm):
    tools = forms.MultipleChoiceField(
        label=_("tools it may use"),
        choices=_tool_choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        required=False,
        help_text=_("A run may use no other tool, whatever its model asks for."),
    )

    checkpoint_before = forms.MultipleChoiceField(
        label=_("keep a checkpoint before"),
        choices=lambda: [each for each in Before.choices if each[0] != Before.IRREVERSIBLE_CALL],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        required=False,
        help_text=_("One is always kept before an action that cannot be undone."),
    )

    class Meta:
        model = Agent
        fields = [
            "slug",
            "name",
            "description",
            "example_goal",
            "model",
            "instructions",
            "tools",
            "price_per_million_tokens",
            "is_listed",
            "auto_undo",
            *TERMS,
        ]


@admin.register(Agent)
class AgentAdmin(ModelAdmin):
    form = AgentForm
    list_display = ["name", "slug", "model", "tool_count", "is_listed"]
    list_filter = ["is_listed"]
    search_fields = ["name", "slug", "model"]
    fieldsets = [
        (None, {"fields": ["slug", "name", "description", "example_goal", "is_listed"]}),
        (
            _("What it is made of"),
            {"fields": ["model", "instructions", "tools", "price_per_million_tokens"]},
        ),
        (
            _("What each of its runs may use"),
            {
                "fields": [*LIMITS, "on_limit"],
                "description": _("Empty is no limit. Runs that have started keep theirs."),
            },
        ),
        (
            _("After a Stop"),
            {
                "fields": ["auto_undo"],
                "description": _("What each tool says about it goes before what is said here."),
            },
        ),
        (_("Checkpoints"), {"fields": ["checkpoint_before"]}),
    ]

    @admin.display(description=_("tools"))
    def tool_count(self, row: Agent) -> int:
        return len(row.tools)

    def get_readonly_fields(self, request: Any, obj: Agent | None = None) -> list[str]:
        """The short name is the key that runs point to."""
        return ["slug"] if obj else []
