"""The forms: what a person typed, checked, and kept when something is wrong with it."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Field
from django.utils.translation import gettext_lazy as _

from agentruns import ids
from agentruns.errors import BadInput
from agentruns.models import LIMITS, Agent, Run, ToolCall
from agentruns.protocol.resume import VOID
from agentruns.protocol.start import checked_goal


class NewRunForm(forms.Form):
    """Which agent, which goal.

    `key` is drawn anew for every page. The run's id is made of it, the person and what was
    typed: the same page sent twice means the same run, and the database keeps it single.
    """

    key = forms.CharField(max_length=64, widget=forms.HiddenInput)
    agent = forms.ChoiceField(
        error_messages={
            "required": _("Choose who should do it."),
            "invalid_choice": _("This agent is not there any more. Choose another one."),
        },
    )
    goal = forms.CharField(
        strip=False,
        widget=forms.Textarea,
        error_messages={
            "required": _("Write what the agent should do."),
            "null_characters_not_allowed": _("The goal has a character that cannot be stored."),
        },
    )

    def __init__(self, *args: Any, agents: Iterable[Agent], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agents = {agent.pk: agent for agent in agents}
        field = self.fields["agent"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(agent.pk, agent.name) for agent in self.agents.values()]

    def clean_agent(self) -> Agent:
        return self.agents[self.cleaned_data["agent"]]

    def clean_goal(self) -> str:
        """The goal as the protocol takes it."""
        try:
            return checked_goal(self.cleaned_data["goal"])
        except BadInput as error:
            raise ValidationError(str(error.sentence)) from error

    def run_id(self, user: Any) -> str:
        """The id of the run that this form, as it was typed, stands for."""
        data = self.cleaned_data
        parts = [str(user.pk), data["key"], data["agent"].pk, data["goal"]]
        return ids.run_id_from(hashlib.sha256("\n".join(parts).encode()).digest())


def frozen_chosen(run: Run, chosen: str) -> str:
    """What becomes of the calls that a stop held back: release or void. Nobody decides that by
    leaving it out, so it raises BadInput where there are any.
    """
    if not chosen and ToolCall.objects.filter(run=run, state="frozen").exists():
        raise BadInput(_("Say what becomes of the actions that were held back."), field="frozen")
    return chosen or VOID


def limits_typed(typed: Mapping[str, str]) -> dict[str, Any]:
    """The limits that were typed, by name. Raises BadInput for what is no number above nothing."""
    limits = {name: _limit(name, typed[name]) for name in LIMITS if name in typed}
    if not limits:
        raise BadInput(_("Write a new limit."))
    return limits


def _limit(name: str, text: str) -> Any:
    column = Run._meta.get_field(name)
    assert isinstance(column, Field)
    try:
        return column.clean(text.strip().replace(",", ""), None)
    except ValidationError as error:
        raise BadInput(" ".join(error.messages), field=name) from error


def new_key() -> str:
    """A key for one page with a form on it."""
    return secrets.token_urlsafe(16)
