"""Threads, runs, the authority a run acts under, and requests to stop it."""

from datetime import timedelta

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django_fsm import ConcurrentTransitionMixin

from agentruns import ids
from agentruns.models import keeping
from agentruns.models.agent import Agent
from agentruns.models.fsm import state_field, state_triggers, verb
from agentruns.models.shown import Shown, salts_field
from agentruns.models.terms import TERMS, Terms
from agentruns.states import ACTIVE_RUN, RUN, STOPPED_RUN, STOPPING_RUN, SUSPENDED_REASONS
from tools.texts import LONGEST

# How long a run has been at work is the database's to count, so that no way of moving a run can
# forget it. It stands still while it waits, is paused, is stopped, or is queued.
TIME_FUNC = """
    IF OLD.status = 'running' THEN
      NEW.acted := OLD.acted + coalesce(clock_timestamp() - OLD.acting_since, interval '0');
      NEW.acting_since := NULL;
    END IF;
    IF NEW.status = 'running' THEN
      NEW.acting_since := clock_timestamp();
    END IF;
    RETURN NEW;
"""


class Thread(models.Model):
    """A conversation; it has runs."""

    id = models.CharField(primary_key=True, max_length=40, default=ids.thread_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="threads")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        triggers = [
            keeping.fixed("is_as_begun", "id", "owner_id", "created_at"),
            *keeping.whole("thread_is_kept"),
        ]

    def __str__(self) -> str:
        return self.id


class Run(ConcurrentTransitionMixin, Terms):
    """One attempt of an agent at a goal. Its row is the mutex of its whole ledger (protocol §2).

    Written by agentruns.protocol only. `ledger_seq` and `ledger_head` are written by the
    database, when a LedgerEvent is inserted; `acted` and `acting_since`, when its status changes:
    how long it has been at work, and since when it is again. Never call `refresh_from_db`:
    django-fsm unlocks the field for the whole class meanwhile, which is not safe between threads.
    Read it anew.
    """

    SHOWN = Shown(
        name=lambda run: "run",
        facts=(
            *("thread", "owner", "agent", "parent", "epoch", "turn", "suspended_reason"),
            *("failure", "created_at", "started_at", "ended_at", "degraded_at", *TERMS),
        ),
        content=("goal", "failure_detail"),
    )

    id = models.CharField(primary_key=True, max_length=40, default=ids.run_id, editable=False)
    thread = models.ForeignKey(Thread, models.PROTECT, related_name="runs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="runs")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="runs")
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children"
    )
    goal = models.TextField(_("goal"))
    status = state_field(RUN)
    suspended_reason = models.CharField(
        max_length=20, blank=True, default="", choices=SUSPENDED_REASONS
    )
    failure = models.CharField(max_length=60, blank=True, default="")
    failure_detail = models.TextField(blank=True, default="")
    epoch = models.PositiveIntegerField(default=1)
    turn = models.PositiveIntegerField(default=0)

    degraded_at = models.DateTimeField(null=True, blank=True)
    degraded_turn = models.PositiveIntegerField(default=0)

    lease_holder = models.CharField(max_length=40, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    drain_deadline = models.DateTimeField(null=True, blank=True)

    salts = salts_field()
    ledger_seq = models.PositiveBigIntegerField(default=0)
    ledger_head = models.CharField(max_length=64, blank=True, default="")

    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    acting_since = models.DateTimeField(null=True, blank=True)
    acted = models.DurationField(default=timedelta)

    begin = verb(RUN, "begin")
    suspend = verb(RUN, "suspend")
    unsuspend = verb(RUN, "unsuspend")
    wait_again = verb(RUN, "wait_again")
    complete = verb(RUN, "complete")
    fail = verb(RUN, "fail")
    request_cancel = verb(RUN, "request_cancel")
    drain = verb(RUN, "drain")
    settle_clean = verb(RUN, "settle_clean")
    settle_dirty = verb(RUN, "settle_dirty")
    reconcile = verb(RUN, "reconcile")
    requeue = verb(RUN, "requeue")

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        permissions = [("stop_run", "Can see, stop, hold and undo all runs")]
        triggers = [
            *state_triggers(RUN),
            pgtrigger.Trigger(
                name="acting_time",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__status__df=pgtrigger.F("new__status")),
                func=TIME_FUNC,
            ),
            keeping.fixed(
                "is_as_asked",
                *("id", "thread_id", "owner_id", "agent_id", "parent_id", "goal", "created_at"),
            ),
            keeping.kept(
                "end_comes_with_a_step",
                ["failure", "failure_detail", "started_at", "ended_at"],
                when="OLD.status = NEW.status",
            ),
            keeping.kept(
                "time_at_work_comes_with_a_step",
                ["acted", "acting_since"],
                when="OLD.status = NEW.status",
            ),
            keeping.grows("epoch_grows", "epoch"),
            # Only the trigger of an event that is appended moves the head.
            pgtrigger.Protect(
                name="head_is_that_of_the_ledger",
                operation=keeping.update_of("ledger_seq", "ledger_head"),
                condition=keeping.changed(
                    "ledger_seq", "ledger_head", when="pg_trigger_depth() = 0"
                ),
            ),
            *keeping.whole("run_is_kept"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=LessThanOrEqual(Length("failure_detail"), LONGEST["failure_detail"]),
                name="failure_detail_is_cut",
            )
        ]
        indexes = [
            models.Index(fields=["owner", "-created_at"]),
            models.Index(fields=["lease_expires_at"]),
            models.Index(
                fields=["status"],
                name="open_runs",
                condition=models.Q(status__in=(*ACTIVE_RUN, *STOPPING_RUN, "stopped_dirty")),
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE_RUN

    @property
    def is_stopping(self) -> bool:
        return self.status in STOPPING_RUN

    @property
    def is_stopped(self) -> bool:
        return self.status in STOPPED_RUN

    @property
    def has_ended(self) -> bool:
        return not self.is_active and not self.is_stopping


class Grant(models.Model):
    """The authority that a run acts under; read anew at every gate, never cached."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="grants")
    tools = models.JSONField(default=list)
    tiers = models.JSONField(default=list)
    issued_at = models.DateTimeField(auto_now_add=True)
    issued_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["run"],
                condition=models.Q(revoked_at__isnull=True),
                name="one_living_grant_per_run",
            )
        ]
        triggers = [
            keeping.fixed("is_as_issued", "run_id", "tools", "tiers", "issued_at", "issued_by_id"),
            *keeping.once("said", "revoked_at"),
            *keeping.whole("grant_is_kept"),
        ]

    def __str__(self) -> str:
        return f"grant {self.pk} of {self.run_id}"


class StopRequest(models.Model):
    """Who asked a run to stop, when, why: one per epoch, however often Stop is pressed.

    `answer` is the body that every repeat of the request gets. `won_by` tells whether the stop
    or the run's own completion came first; `interrupted`, what the run was at (R10).
    `undo_is_due`: what can be undone is to be undone by itself now, and nobody has begun with it.
    """

    SHOWN = Shown(
        name=lambda stop: f"stop:{stop.epoch}",
        facts=(
            *("signal", "requested_by", "pending", "won_by", "interrupted", "requested_at"),
            *("no_new_effect_at", "generation_stopped_at", "settled_at"),
        ),
        content=("reason", "answer"),
    )

    class Pending(models.TextChoices):
        DISCARD = "discard", _("drop what has not started")
        FREEZE = "freeze", _("keep what has not started for a person")

    class WonBy(models.TextChoices):
        STOP = "stop", _("the stop")
        COMPLETION = "completion", _("the run's own end")

    class Interrupted(models.TextChoices):
        NOTHING = "", _("nothing")
        BEFORE_START = "before_start", _("before it began")
        GENERATING = "generating", _("while it was writing")
        IN_READ = "in_read", _("while it was reading")
        BEFORE_EFFECT = "before_effect", _("before an action")
        AFTER_EFFECT = "after_effect", _("with an action under way")
        WAITING = "waiting", _("while it waited")

    run = models.ForeignKey(Run, models.PROTECT, related_name="stops")
    epoch = models.PositiveIntegerField(help_text=_("the epoch that began with this stop"))
    signal = models.CharField(max_length=20, default="user")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500, blank=True, default="")
    pending = models.CharField(max_length=10, choices=Pending.choices, default=Pending.DISCARD)
    won_by = models.CharField(max_length=12, choices=WonBy.choices, default=WonBy.STOP)
    interrupted = models.CharField(
        max_length=20, choices=Interrupted.choices, blank=True, default=Interrupted.NOTHING
    )
    requested_at = models.DateTimeField()
    no_new_effect_at = models.DateTimeField()
    generation_stopped_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    undo_is_due = models.BooleanField(default=False)
    answer = models.JSONField(default=dict)
    salts = salts_field()

    class Meta:
        ordering = ["-epoch"]
        constraints = [
            models.UniqueConstraint(fields=["run", "epoch"], name="one_stop_per_epoch"),
        ]
        indexes = [
            models.Index(fields=["run"], name="undos_due", condition=models.Q(undo_is_due=True)),
        ]
        triggers = [
            keeping.fixed(
                "is_as_asked",
                *("run_id", "epoch", "signal", "requested_by_id", "reason", "pending"),
                *("won_by", "interrupted", "requested_at", "no_new_effect_at"),
            ),
            *keeping.once("said", "generation_stopped_at", "settled_at"),
            keeping.kept(
                "rest_is_kept", ["generation_stopped_at"], when="OLD.settled_at IS NOT NULL"
            ),
            keeping.kept("said_answer", ["answer"], when="OLD.answer <> '{}'::jsonb"),
            *keeping.whole("stop_is_kept"),
        ]

    def __str__(self) -> str:
        return f"stop of {self.run_id} at epoch {self.epoch}"
