"""Agents: the one table of the core that people edit."""

from typing import Any

from django import forms
from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from agentruns.models import Agent
from tools import registry


def _tool_choices() -> list[tuple[str, str]]:
    return [(item.name, f"{item.name} – {item.title}") for item in registry.all()]


class AgentForm(forms.ModelForm):
    tools = forms.MultipleChoiceField(
        label=_("tools it may use"),
        choices=_tool_choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        required=False,
        help_text=_("A run may use no other tool, whatever its model asks for."),
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
        ]


@admin.register(Agent)
class AgentAdmin(ModelAdmin):
    form = AgentForm
    list_display = ["name", "slug", "model", "tool_count", "is_listed"]
    list_filter = ["is_listed"]
    search_fields = ["name", "slug", "model"]

    @admin.display(description=_("tools"))
    def tool_count(self, row: Agent) -> int:
        return len(row.tools)

    def get_readonly_fields(self, request: Any, obj: Agent | None = None) -> list[str]:
        """The short name is the key that runs point to."""
        return ["slug"] if obj else []
