"""The terms of a run: what it may use before it has to stop, wrap up or ask (R08), and what a
checkpoint is kept before (R13).
"""

from decimal import Decimal
from typing import Any

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


def each_model_call() -> list[str]:
    """The usual checkpoints: the turn boundaries."""
    return ["model_call"]


class Terms(models.Model):
    """What a run may use; null is no limit. An agent has them, and each of its runs a copy.

    `token_limit` counts tokens read and written; `cost_limit` US dollars; `call_limit` calls
    that passed the gate; `time_limit` seconds at work: not while it waits, is paused or stopped.
    `checkpoint_before` lists what a Checkpoint is kept before, besides each irreversible call.
    """

    class OnLimit(models.TextChoices):
        STOP = "stop", _("stop, and keep what has not started for a person")
        DEGRADE = "degrade", _("only read from then on, and wrap up")
        WAIT = "wait", _("wait until somebody raises the limit")

    token_limit = models.PositiveIntegerField(
        _("tokens"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    cost_limit = models.DecimalField(
        _("US dollars"),
        max_digits=9,
        decimal_places=3,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal("0.001"))],
    )
    call_limit = models.PositiveIntegerField(
        _("actions"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    time_limit = models.PositiveIntegerField(
        _("seconds"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    on_limit = models.CharField(
        _("at a limit"), max_length=10, choices=OnLimit, default=OnLimit.STOP
    )

    checkpoint_before = models.JSONField(
        _("checkpoints before"), default=each_model_call, blank=True
    )

    class Meta:
        abstract = True

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are set, by name, in the order of LIMITS."""
        return {name: value for name in LIMITS if (value := getattr(self, name)) is not None}


LIMITS = ("token_limit", "cost_limit", "call_limit", "time_limit")
TERMS = (*LIMITS, "on_limit", "checkpoint_before")
