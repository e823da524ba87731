"""An agent: which model, which instructions, which tools it may use."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from agentruns.models.terms import Terms

DEMO = "demo:"  # so begins the name of a model of the demo world


class Agent(Terms):
    """`model` names a provider and a model: `demo:inbox`, or any name that pydantic-ai knows
    (`openai:gpt-5`), see planner/providers.py.
    """

    class AutoUndo(models.TextChoices):
        OFFER = "offer", _("offer it, and wait for a person")
        REVERSIBLE = "reversible", _("undo reversible steps by itself after a Stop")

    slug = models.SlugField(_("short name"), primary_key=True, max_length=60)
    name = models.CharField(_("name"), max_length=120)
    description = models.TextField(_("what it does"), blank=True)
    example_goal = models.TextField(_("example of a goal"), blank=True)
    model = models.CharField(_("model"), max_length=120)
    instructions = models.TextField(_("instructions to the model"), blank=True)
    tools = models.JSONField(_("tools it may use"), default=list)
    price_per_million_tokens = models.DecimalField(
        _("price of a million tokens written, in US dollars"),
        max_digits=9,
        decimal_places=3,
        null=True,
        blank=True,
    )
    auto_undo = models.CharField(_("undo"), max_length=20, choices=AutoUndo, default=AutoUndo.OFFER)
    is_listed = models.BooleanField(_("people may choose it"), default=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("agent")
        verbose_name_plural = _("agents")

    def __str__(self) -> str:
        return self.name
