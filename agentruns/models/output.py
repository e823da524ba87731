"""Model text, kept as it was streamed, and never shown as complete unless it is."""

from django.db import models
from django_fsm import ConcurrentTransitionMixin

from agentruns.models import keeping
from agentruns.models.fsm import state_field, state_triggers, verb
from agentruns.models.run import Run
from agentruns.models.shown import Shown, salts_field
from agentruns.states import OUTPUT


class CompleteOutputs(models.Manager["Output"]):
    """The one door for whatever serves finished answers: search, cache, index, export (I8)."""

    def get_queryset(self) -> models.QuerySet["Output"]:
        return super().get_queryset().filter(status="complete")


class Output(ConcurrentTransitionMixin, models.Model):
    """One turn's text. `offset` counts the characters of `text`; tokens as the provider counts."""

    SHOWN = Shown(
        name=lambda output: f"output:{output.turn}",
        facts=(
            *("epoch", "offset", "tokens_in", "tokens_out", "finish_reason"),
            *("started_at", "ended_at"),
        ),
        content=("text",),
    )

    run = models.ForeignKey(Run, models.PROTECT, related_name="outputs")
    turn = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    text = models.TextField(blank=True, default="")
    status = state_field(OUTPUT)
    offset = models.PositiveIntegerField(default=0)
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    salts = salts_field()
    finish_reason = models.CharField(max_length=40, blank=True, default="")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    finish = verb(OUTPUT, "finish")
    cut = verb(OUTPUT, "cut")

    objects = models.Manager()
    complete = CompleteOutputs()

    class Meta:
        ordering = ["run", "turn"]
        triggers = [
            *state_triggers(OUTPUT),
            keeping.fixed("is_as_begun", "run_id", "turn", "epoch", "started_at"),
            keeping.kept(
                "end_is_kept",
                ["text", "offset", "tokens_in", "tokens_out", "finish_reason", "ended_at"],
                when=keeping.among("status", OUTPUT.terminal),
            ),
            *keeping.whole("output_is_kept"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["run", "turn"], name="one_output_per_turn"),
        ]

    def __str__(self) -> str:
        return f"turn {self.turn} of {self.run_id}"
