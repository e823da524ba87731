"""The ledger row of one tool call, which is its outbox row too."""

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual
from django.utils.translation import gettext_lazy as _
from django_fsm import ConcurrentTransitionMixin
from pydantic import BaseModel

from agentruns import ids
from agentruns.models import keeping
from agentruns.models.fsm import state_field, state_triggers, verb
from agentruns.models.run import Run
from agentruns.models.shown import Shown, salts_field
from agentruns.states import CALL, READY
from tools import registry
from tools.errors import BadArguments
from tools.models import TIER_LABELS
from tools.registry import RegisteredTool
from tools.secrets import unmasked
from tools.texts import LONGEST

# The gate, once more, where no code can go round it. It locks the run's row, so a Stop that is
# about to commit is waited for, and one that has committed is seen. The one exception: a run that
# is being stopped finishes an atomic unit whose step before has landed (protocol §9).
GATE_FUNC = """
    PERFORM 1 FROM agentruns_run r
      WHERE r.id = NEW.run_id AND (
        (r.status = 'running' AND r.epoch = NEW.epoch)
        OR (r.status IN ('cancel_requested', 'draining') AND r.epoch = NEW.epoch + 1
            AND NEW.unit <> '' AND EXISTS (
              SELECT 1 FROM agentruns_toolcall before
                WHERE before.run_id = NEW.run_id AND before.turn = NEW.turn
                  AND before.unit = NEW.unit AND before.unit_step = NEW.unit_step - 1
                  AND before.state = 'landed')))
      FOR NO KEY UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'gate: call % may not start: its run is not running in epoch %',
        NEW.id, NEW.epoch USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
"""

# Effects that are out are not denied by their row: a call with items ends landed, or in doubt.
ITEMS_FUNC = """
    IF (NEW.state = 'landed') <> EXISTS (
        SELECT 1 FROM agentruns_callitem item WHERE item.call_id = NEW.id) THEN
      RAISE EXCEPTION 'items: call % may not go from % to %', NEW.id, OLD.state, NEW.state
        USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
"""
# Its receipt comes with the end of a call. One with items may have a further one come in later.
OUTCOME_FUNC = """
    IF NEW.state <> 'landed' OR NOT EXISTS (
        SELECT 1 FROM agentruns_callitem item WHERE item.call_id = NEW.id) THEN
      RAISE EXCEPTION 'keeping: the outcome of call % is on record', NEW.id
        USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
"""
_NEVER_STARTED = ("voided", "frozen", "rejected", "expired", "denied", "failed")

# An item is an effect: it can only be of a call that was let out, and is not open again.
ITEM_BIRTH_FUNC = """
    PERFORM 1 FROM agentruns_toolcall c
      WHERE c.id = NEW.call_id AND c.gate_passed_at IS NOT NULL;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'items: call % has not passed the gate', NEW.call_id
        USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
"""


class ToolCall(ConcurrentTransitionMixin, models.Model):
    """One call: intent, authority, claim, outcome. Written by agentruns.protocol only.

    `args` is what everybody may see. `secrets` has what is masked in it (see tools/secrets.py),
    until the call has ended.

    `epoch` is the epoch that it may act in; `position` its place in its turn; `number` its place
    in the run (1, 2, …); `text_offset` where in the turn's text the model wrote it. `unit` names
    the atomic unit that it is step `unit_step` of `unit_of` of ("": of none).
    `effect_digest`: calls of a tool that have it in common would have the same effect.
    `horizon_at`: the outside may act on the call until then, so that “not found” is no answer
    before. `lookups`: how often it was asked since the doubt began, or since a person asked again.
    `consents_needed`: how many different people have to agree, as far as anybody was asked;
    `consent_count`: how many have. `consent_digest` and `consent_by` are of the last of them, and
    set once all have.
    """

    SHOWN = Shown(
        name=lambda call: "call",
        facts=(
            *("tool", "tool_revision", "tier", "args_digest", "request_id", "number", "turn"),
            *("unit", "proposed_at", "reason", "gate_passed_at", "ended_at", "contradicted_at"),
            *("consent_digest", "consent_by", "consent_count", "consents_needed"),
            *("consent_used_at", "effect_digest", "last_lookup"),
            *("undo_state", "undone_at"),
        ),
        content=("summary", "detail", "draft", "receipt", "response"),
    )

    class UndoState(models.TextChoices):
        NONE = "", _("not undone")
        UNDONE = "undone", _("undone")

    class LastLookup(models.TextChoices):
        NONE = "", _("not looked up")
        FOUND = "found", _("found")
        NOT_FOUND = "not_found", _("not found so far")
        NO_ANSWER = "no_answer", _("no answer")

    id = models.CharField(primary_key=True, max_length=40, default=ids.call_id, editable=False)
    # No index of its own: each unique constraint begins with the run.
    run = models.ForeignKey(Run, models.PROTECT, related_name="calls", db_index=False)
    turn = models.PositiveIntegerField()
    position = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    text_offset = models.PositiveIntegerField(default=0)
    provider_call_id = models.CharField(max_length=200)

    tool = models.CharField(_("tool"), max_length=200)
    tool_revision = models.CharField(max_length=64, blank=True, default="")
    tier = models.CharField(
        max_length=20, choices=[(t.value, label) for t, label in TIER_LABELS.items()]
    )
    is_eager = models.BooleanField(default=False)
    args = models.JSONField(default=dict)
    secrets = models.JSONField(null=True, blank=True, editable=False)
    args_digest = models.CharField(max_length=64, blank=True, default="")
    effect_digest = models.CharField(max_length=64, blank=True, default="")
    summary = models.TextField(_("in plain words"), blank=True, default="")
    request_id = models.CharField(max_length=40, unique=True, default=ids.request_id)

    state = state_field(CALL)
    reason = models.CharField(max_length=60, blank=True, default="")
    detail = models.TextField(blank=True, default="")
    draft = models.JSONField(null=True, blank=True)
    receipt = models.JSONField(null=True, blank=True)
    response = models.TextField(blank=True, default="")
    salts = salts_field()

    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    unit = models.CharField(max_length=200, blank=True, default="")
    unit_step = models.PositiveIntegerField(default=0)
    unit_of = models.PositiveIntegerField(default=0)
    is_uninterruptible = models.BooleanField(default=False)

    claim_token = models.CharField(max_length=40, blank=True, default="")
    claim_expires_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)

    consent_digest = models.CharField(max_length=64, blank=True, default="")
    consent_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+"
    )
    consent_expires_at = models.DateTimeField(null=True, blank=True)
    consents_needed = models.PositiveSmallIntegerField(default=0)
    consent_count = models.PositiveSmallIntegerField(default=0)
    consent_used_at = models.DateTimeField(null=True, blank=True)

    doubted_at = models.DateTimeField(null=True, blank=True)
    horizon_at = models.DateTimeField(null=True, blank=True)
    lookups = models.PositiveIntegerField(default=0)
    last_lookup = models.CharField(max_length=10, choices=LastLookup, blank=True, default="")
    looked_up_at = models.DateTimeField(null=True, blank=True)
    next_lookup_at = models.DateTimeField(null=True, blank=True)

    proposed_at = models.DateTimeField()
    gate_passed_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    contradicted_at = models.DateTimeField(null=True, blank=True)
    undo_state = models.CharField(
        max_length=10, choices=UndoState.choices, blank=True, default=UndoState.NONE
    )
    undone_at = models.DateTimeField(null=True, blank=True)

    buffer = verb(CALL, "buffer")
    ask = verb(CALL, "ask")
    approve = verb(CALL, "approve")
    prepare = verb(CALL, "prepare")
    pass_gate = verb(CALL, "pass_gate")
    postpone = verb(CALL, "postpone")
    conclude = verb(CALL, "conclude")
    land = verb(CALL, "land")
    fail = verb(CALL, "fail")
    doubt = verb(CALL, "doubt")
    void = verb(CALL, "void")
    freeze = verb(CALL, "freeze")
    reject = verb(CALL, "reject")
    expire = verb(CALL, "expire")
    deny = verb(CALL, "deny")
    contradict = verb(CALL, "contradict")

    class Meta:
        ordering = ["run", "number"]
        verbose_name = _("call")
        verbose_name_plural = _("calls")
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="one_call_per_number"),
            models.UniqueConstraint(
                fields=["run", "turn", "position"], name="one_call_per_position"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=sorted(CALL.terminal))
                | models.Q(secrets__isnull=True),
                name="secrets_are_forgotten",
            ),
            *(
                models.CheckConstraint(
                    condition=LessThanOrEqual(Length(column), LONGEST[column]),
                    name=f"{column}_is_cut",
                )
                for column in ("summary", "detail", "response")
            ),
        ]
        # Of those whose outcome is open alone: they are few, however long the ledger grows.
        indexes = [
            models.Index(
                fields=["state"],
                name="open_calls",
                condition=~models.Q(state__in=sorted(CALL.terminal)),
            ),
            # In doubt, or found not to have happened: what looks them up finds them by it.
            models.Index(
                fields=["next_lookup_at"],
                name="calls_to_look_up",
                condition=models.Q(next_lookup_at__isnull=False),
            ),
            # What became of a tool's calls of late: for its limit per hour, and its page in the
            # admin. Of those that have ended, so that each call is entered once.
            models.Index(
                fields=["tool", "-ended_at"],
                name="ended_calls_of_a_tool",
                condition=models.Q(ended_at__isnull=False),
            ),
        ]
        triggers = [
            *state_triggers(CALL),
            pgtrigger.Trigger(
                name="gate",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__state__df=pgtrigger.F("new__state"))
                & pgtrigger.Q(new__state="in_flight"),
                func=GATE_FUNC,
            ),
            pgtrigger.Trigger(
                name="items",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__state__df=pgtrigger.F("new__state"))
                & (
                    pgtrigger.Q(new__state__in=_NEVER_STARTED)
                    | (pgtrigger.Q(new__state="landed") & pgtrigger.Q(old__state__in=READY))
                ),
                func=ITEMS_FUNC,
            ),
            pgtrigger.Protect(
                name="unit_is_kept",
                operation=pgtrigger.Update,
                condition=pgtrigger.AnyChange(
                    "turn", "unit", "unit_step", "unit_of", "is_uninterruptible"
                ),
            ),
            pgtrigger.Protect(
                name="contradiction_is_marked",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(
                    old__state="failed", new__state="landed", new__contradicted_at__isnull=True
                ),
            ),
            pgtrigger.Protect(
                name="undone_once_and_only_if_landed",
                operation=pgtrigger.Update,
                condition=(
                    pgtrigger.Q(new__undo_state="undone") & ~pgtrigger.Q(new__state="landed")
                )
                | (pgtrigger.Q(old__undo_state="undone") & ~pgtrigger.Q(new__undo_state="undone")),
            ),
            keeping.fixed(
                "is_as_proposed",
                *("id", "run_id", "number", "position", "text_offset", "provider_call_id"),
                *("tool", "tool_revision", "tier", "is_eager", "args", "args_digest"),
                *("effect_digest", "summary", "request_id", "proposed_at"),
                *("unit_step", "unit_of", "is_uninterruptible"),
            ),
            keeping.kept("secrets_are_only_forgotten", ["secrets"], when="NEW.secrets IS NOT NULL"),
            keeping.kept(
                "draft_is_not_swapped",
                ["draft"],
                when="OLD.draft IS NOT NULL AND NEW.draft IS NOT NULL",
            ),
            keeping.grows("epoch_grows", "epoch"),
            *keeping.once("said", "consent_digest", "consent_by_id", "undone_at"),
            keeping.kept(
                "times_come_with_a_step",
                ["consent_expires_at", "doubted_at", "horizon_at"],
                when="OLD.state = NEW.state",
            ),
            keeping.kept(
                "gate_opens_with_a_step",
                ["gate_passed_at"],
                when="(OLD.state = NEW.state OR 'in_flight' NOT IN (OLD.state, NEW.state))",
            ),
            keeping.kept(
                "end_is_kept",
                [
                    *("reason", "detail", "ended_at", "contradicted_at", "attempts"),
                    *("consent_used_at", "consent_count", "consents_needed"),
                    *("consent_digest", "consent_by_id"),
                ],
                when=keeping.among("state", CALL.terminal),
            ),
            pgtrigger.Trigger(
                name="outcome_is_kept",
                when=pgtrigger.Before,
                operation=keeping.update_of("receipt", "response"),
                condition=keeping.changed("receipt", "response", when="OLD.state = NEW.state"),
                func=OUTCOME_FUNC,
            ),
            *keeping.whole("call_is_kept"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.id}"

    @property
    def outlasts_drain(self) -> bool:
        """Whether Stop waits for it until its own deadline, beyond the drain's (protocol §9)."""
        return self.is_uninterruptible or self.unit != ""

    @property
    def is_held_back(self) -> bool:
        """Whether it is drafted, and waits to be sent: until then it can be taken back."""
        return self.state == "prepared" and self.next_attempt_at is not None

    @property
    def in_words(self) -> str:
        """`summary` in the reader's language, where the tool that wrote it is still the same."""
        registered = registry.get(self.tool)
        if registered is None or registered.revision != self.tool_revision:
            return self.summary
        try:
            return registered.describe(self.arguments(registered))
        except BadArguments:
            return self.summary

    def arguments(self, registered: RegisteredTool) -> BaseModel:
        """The arguments as they go out, read by the call's tool. Raises BadArguments."""
        return registered.parse(unmasked(self.args, self.secrets))


class CallItem(models.Model):
    """One item of a call that has many (a mail of a batch): its receipt, kept as soon as it is out.

    `position` counts from 1; `key` is the tool's own name for the item.
    """

    SHOWN = Shown(
        name=lambda item: f"item:{item.position}", facts=("at",), content=("key", "receipt")
    )

    call = models.ForeignKey(ToolCall, models.PROTECT, related_name="items")
    position = models.PositiveIntegerField()
    key = models.CharField(max_length=200)
    receipt = models.JSONField(default=dict)
    salts = salts_field()
    at = models.DateTimeField()

    class Meta:
        ordering = ["call", "position"]
        constraints = [
            models.UniqueConstraint(fields=["call", "key"], name="one_receipt_per_item"),
            models.UniqueConstraint(fields=["call", "position"], name="one_item_per_position"),
        ]
        triggers = [
            pgtrigger.Trigger(
                name="item_birth",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=ITEM_BIRTH_FUNC,
            ),
            *keeping.append_only("item_is_kept"),
        ]

    def __str__(self) -> str:
        return f"item {self.position} of {self.call_id}"
