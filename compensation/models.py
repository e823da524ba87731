"""Requests to undo, and the steps that carry them out. Written by compensation.saga only."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from django_fsm import ConcurrentTransitionMixin

from agentruns import ids
from agentruns.models import Run, ToolCall, keeping
from agentruns.models.fsm import state_field, state_triggers, verb
from agentruns.models.shown import Shown, salts_field
from agentruns.states import State
from compensation.states import COMPENSATION, LIVING, REASONS, UNSETTLED, WITHOUT_EFFECT


class UndoRequest(models.Model):
    """Somebody asked for some calls of a run to be undone; the undo has this person's authority.

    `stop_epoch`: nobody asked, it followed by itself from the Stop of that epoch, at most once.
    `stopped_at`, `stopped_by`: somebody has stopped this undo; no step of it begins after that.
    """

    SHOWN = Shown(
        name=lambda request: f"request:{request.pk}",
        facts=("requested_by", "created_at", "stop_epoch", "stopped_at", "stopped_by"),
    )

    id = models.CharField(primary_key=True, max_length=40, default=ids.undo_id, editable=False)
    run = models.ForeignKey(Run, models.PROTECT, related_name="undo_requests")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    stop_epoch = models.PositiveIntegerField(null=True, blank=True)
    stopped_at = models.DateTimeField(_("stopped at"), null=True, blank=True)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("request to undo")
        verbose_name_plural = _("requests to undo")
        constraints = [
            models.UniqueConstraint(
                fields=["run", "stop_epoch"], name="one_undo_by_itself_per_stop"
            ),
        ]
        triggers = [
            keeping.fixed(
                "is_as_asked", "id", "run_id", "requested_by_id", "created_at", "stop_epoch"
            ),
            *keeping.once("said", "stopped_at", "stopped_by_id"),
            *keeping.whole("undo_request_is_kept"),
        ]

    def __str__(self) -> str:
        return self.id


class Compensation(ConcurrentTransitionMixin, models.Model):
    """One undo of one landed call.

    `position` is its place in its request: 1 for the call that landed last. `note` says what
    the undo did and did not cover; `reason` (a key of states.REASONS) and `detail` (the outside
    system's own words) what stands in its way.
    """

    SHOWN = Shown(
        name=lambda step: f"step:{step.pk}",
        facts=(
            *("call", "position", "reason", "attempts", "created_at", "ended_at"),
            *("settled_by", "settled_at"),
        ),
        content=("detail", "receipt", "note", "settled_reason"),
    )

    id = models.CharField(
        primary_key=True, max_length=40, default=ids.compensation_id, editable=False
    )
    request = models.ForeignKey(UndoRequest, models.PROTECT, related_name="steps")
    call = models.ForeignKey(ToolCall, models.PROTECT, related_name="compensations")
    position = models.PositiveIntegerField()

    state = state_field(COMPENSATION)
    reason = models.CharField(max_length=60, blank=True, default="")
    detail = models.TextField(blank=True, default="")
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    next_attempt_at = models.DateTimeField(_("next attempt"), null=True, blank=True)
    claim_token = models.CharField(max_length=40, blank=True, default="")
    claim_expires_at = models.DateTimeField(null=True, blank=True)
    receipt = models.JSONField(null=True, blank=True)
    salts = salts_field()
    note = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    settled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+"
    )
    settled_at = models.DateTimeField(_("settled by hand"), null=True, blank=True)
    settled_reason = models.TextField(_("reason"), blank=True, default="")

    start = verb(COMPENSATION, "start")
    postpone = verb(COMPENSATION, "postpone")
    lapse = verb(COMPENSATION, "lapse")
    land = verb(COMPENSATION, "land")
    find_changed = verb(COMPENSATION, "find_changed")
    find_impossible = verb(COMPENSATION, "find_impossible")
    give_up = verb(COMPENSATION, "give_up")
    drop = verb(COMPENSATION, "drop")
    undo_by_hand = verb(COMPENSATION, "undo_by_hand")
    leave = verb(COMPENSATION, "leave")

    class Meta:
        ordering = ["-created_at", "position"]
        verbose_name = _("undo")
        verbose_name_plural = _("undos")
        constraints = [
            models.UniqueConstraint(
                fields=["call"],
                condition=models.Q(state__in=(*LIVING, "undone")),
                name="one_living_undo_per_call",
            ),
        ]
        indexes = [
            models.Index(fields=["state"], name="open_undos", condition=models.Q(state__in=LIVING))
        ]
        triggers = [
            *state_triggers(COMPENSATION),
            keeping.fixed("is_as_planned", "id", "request_id", "call_id", "position", "created_at"),
            *keeping.once("said", "settled_by_id", "settled_at", "settled_reason"),
            keeping.kept(
                "end_is_kept",
                [
                    *("reason", "detail", "attempts", "receipt", "note", "ended_at"),
                    *("settled_by_id", "settled_at", "settled_reason"),
                ],
                when=keeping.among("state", (*WITHOUT_EFFECT, "undone")),
            ),
            *keeping.whole("undo_is_kept"),
        ]

    def __str__(self) -> str:
        return f"undo of {self.call_id}"

    @property
    def shown(self) -> State:
        """The state's word, tone and icon."""
        return COMPENSATION.states[self.state]

    @property
    def is_living(self) -> bool:
        return self.state in LIVING

    @property
    def is_by_hand(self) -> bool:
        return self.settled_by_id is not None

    @property
    def needs_person(self) -> bool:
        """Of the latest step of a call: it did not work, and nobody has settled it."""
        return self.state in UNSETTLED and not self.call.undo_state

    @property
    def why(self) -> str:
        """What stands in its way, in plain words; "" if nothing does."""
        return str(REASONS.get(self.reason, ""))
