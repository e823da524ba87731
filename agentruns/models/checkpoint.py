"""Moments that a run can be taken up from again."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from agentruns.models import keeping
from agentruns.models.call import ToolCall
from agentruns.models.run import Run


class Checkpoint(models.Model):
    """A moment before a step: the turn, and the ledger up to `seq` (protocol §1, R13)."""

    class Before(models.TextChoices):
        MODEL_CALL = "model_call", _("each answer of the model")
        TOOL_CALL = "tool_call", _("each action")
        IRREVERSIBLE_CALL = "irreversible_call", _("each action that cannot be undone")

    run = models.ForeignKey(Run, models.PROTECT, related_name="checkpoints")
    epoch = models.PositiveIntegerField()
    turn = models.PositiveIntegerField()
    seq = models.PositiveBigIntegerField()
    before = models.CharField(max_length=20, choices=Before)
    call = models.ForeignKey(ToolCall, models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ["run", "seq"]
        indexes = [models.Index(fields=["run", "-seq"])]
        triggers = keeping.append_only("checkpoint_is_kept")

    def __str__(self) -> str:
        return f"turn {self.turn} of {self.run_id}"
