"""One row per registered tool: what an admin decided about it."""

import pghistory
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from tools import registry
from tools.contract import Tier
from tools.imports.models import ImportedTool, ToolSource

__all__ = ["TIER_LABELS", "ImportedTool", "Tool", "ToolSource"]

TIER_LABELS = {
    Tier.READ_ONLY: _("read-only"),
    Tier.REVERSIBLE: _("can be undone"),
    Tier.COMPENSABLE: _("can be partly undone"),
    Tier.IRREVERSIBLE: _("cannot be undone"),
}

MOST_APPROVALS = 5


def at_most_the_executors(seconds: int) -> None:
    """Refuse a time limit that no executor would live to see."""
    if seconds > registry.longest_timeout():
        sentence = _("At most %(limit)d seconds: what takes longer is ended from outside.")
        raise ValidationError(sentence % {"limit": registry.longest_timeout()})


class ToolManager(models.Manager["Tool"]):
    def sync(self) -> list[str]:
        """Create the missing rows, with the tier that the code declares; their names."""
        known = set(self.values_list("name", flat=True))
        missing = [item for item in registry.all() if item.name not in known]
        self.bulk_create(
            [Tool(name=item.name, tier=item.tier) for item in missing], ignore_conflicts=True
        )
        return [item.name for item in missing]


@pghistory.track(
    pghistory.InsertEvent("created"),
    pghistory.UpdateEvent("changed"),
    exclude=["updated_at", "updated_by"],  # the event and its context have both
    append_only=True,
)
class Tool(models.Model):
    """The policy of one tool. It can tighten what the code declares, never loosen it.

    Each change is kept by the database itself (tools/history.py), with who and why where it was
    made inside `changes.recorded`.
    """

    class Dispatch(models.TextChoices):
        DEFAULT = "default", _("as the tier says")
        SPECULATIVE = "speculative", _("always wait for the end of the answer")

    class Source(models.TextChoices):
        CODE = "code", _("our own code")
        MCP = "mcp", _("an MCP server")
        OPENAPI = "openapi", _("an OpenAPI document")

    class AutoUndo(models.TextChoices):
        AGENT = "agent", _("as the agent says")
        NEVER = "never", _("never by itself")
        ALWAYS = "always", _("always, after a Stop")

    name = models.CharField(_("name"), max_length=100, primary_key=True)
    tier = models.CharField(
        _("tier"),
        max_length=20,
        choices=[(tier.value, label) for tier, label in TIER_LABELS.items()],
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    dispatch = models.CharField(
        _("when it may act"), max_length=20, choices=Dispatch, default=Dispatch.DEFAULT
    )
    approvals_needed = models.PositiveSmallIntegerField(
        _("approvals needed"),
        default=0,
        validators=[MaxValueValidator(MOST_APPROVALS)],
        help_text=_(
            "How many different people have to agree to each call. 0: as the tier says, which is "
            "one person for what cannot be undone, and nobody otherwise."
        ),
    )
    approver_group = models.ForeignKey(
        "auth.Group",
        models.PROTECT,
        verbose_name=_("who may approve"),
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Only members of this group. Empty: the owner of the run, or any reviewer."),
    )
    time_limit = models.PositiveSmallIntegerField(
        _("time limit"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), at_most_the_executors],
        help_text=_(
            "Seconds for each answer of the outside system. Empty: what the tool’s code says."
        ),
    )
    rate_limit = models.PositiveIntegerField(
        _("calls per hour"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("What is more waits for its turn. Empty: no limit."),
    )
    auto_undo = models.CharField(
        _("undo by itself"),
        max_length=20,
        choices=AutoUndo,
        default=AutoUndo.AGENT,
        help_text=_("Whether what it did is undone when a person stops the run."),
    )
    source = models.CharField(
        _("comes from"), max_length=10, choices=Source, default=Source.CODE, editable=False
    )
    is_tagged = models.BooleanField(
        _("tagged by an admin"),
        default=True,
        editable=False,
        help_text=_("Of an imported tool: whether an admin has said how far it can be undone."),
    )
    imported_revision = models.CharField(
        _("revision of what was imported"), max_length=64, blank=True, editable=False
    )
    note = models.TextField(
        _("note"), blank=True, help_text=_("What other admins should know about it.")
    )
    updated_at = models.DateTimeField(_("changed at"), auto_now=True)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("changed by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )

    objects = ToolManager()

    class Meta:
        verbose_name = _("tool")
        verbose_name_plural = _("tools")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(tier__in=[tier.value for tier in Tier]),
                name="tool_tier_known",
            ),
            models.CheckConstraint(
                condition=models.Q(approvals_needed__lte=MOST_APPROVALS),
                name="tool_approvals_in_reason",
            ),
            models.CheckConstraint(
                condition=~models.Q(time_limit=0) & ~models.Q(rate_limit=0),
                name="tool_limits_leave_something",
            ),
            models.CheckConstraint(
                condition=models.Q(enabled=False) | models.Q(is_tagged=True),
                name="tool_enabled_is_tagged",
            ),
        ]
        permissions = [("loosen_imported_tool", "Can loosen the tier of an imported tool")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_imported(self) -> bool:
        """Whether it comes from somebody else's description, which declares nothing to rely on."""
        return self.source != Tool.Source.CODE

    def clean(self) -> None:
        """Refuse a tier looser than the code declares."""
        if self.tier in list(Tier) and (why := self.looser_than_code(Tier(self.tier))):
            raise ValidationError({"tier": why})

    def looser_than_code(self, tier: Tier) -> str:
        """Why `tier` is looser than what the code declares; "" if it is not."""
        declared = registry.get(self.name)
        if declared is None or self.is_imported or tier.rank >= declared.tier.rank:
            return ""
        return _(
            "The code of this tool declares “%(declared)s”. You can make it "
            "stricter, but not looser than that."
        ) % {"declared": TIER_LABELS[declared.tier]}
