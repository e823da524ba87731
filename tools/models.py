"""One row per registered tool: what an admin decided about it."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from tools import registry
from tools.contract import Tier

TIER_LABELS = {
    Tier.READ_ONLY: _("read-only"),
    Tier.REVERSIBLE: _("can be undone"),
    Tier.COMPENSABLE: _("can be partly undone"),
    Tier.IRREVERSIBLE: _("cannot be undone"),
}


class ToolManager(models.Manager["Tool"]):
    def sync(self) -> list[str]:
        """Create the missing rows, with the tier that the code declares; their names."""
        known = set(self.values_list("name", flat=True))
        missing = [item for item in registry.all() if item.name not in known]
        self.bulk_create(
            [Tool(name=item.name, tier=item.tier) for item in missing], ignore_conflicts=True
        )
        return [item.name for item in missing]


class Tool(models.Model):
    """The policy of one tool. It can tighten what the code declares, never loosen it."""

    class Dispatch(models.TextChoices):
        DEFAULT = "default", _("as the tier says")
        SPECULATIVE = "speculative", _("always wait for the end of the answer")

    class Approval(models.TextChoices):
        BY_TIER = "by_tier", _("as the tier says")
        ALWAYS = "always", _("always ask a person")

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
    approval = models.CharField(
        _("consent"), max_length=20, choices=Approval, default=Approval.BY_TIER
    )
    auto_undo = models.CharField(
        _("undo by itself"),
        max_length=20,
        choices=AutoUndo,
        default=AutoUndo.AGENT,
        help_text=_("Whether what it did is undone when a person stops the run."),
    )
    note = models.TextField(_("note"), blank=True, help_text=_("Why it is set this way."))
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
            )
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse a tier looser than the code declares."""
        declared = registry.get(self.name)
        if declared is None or self.tier not in list(Tier):
            return
        if Tier(self.tier).rank < declared.tier.rank:
            raise ValidationError(
                {
                    "tier": _(
                        "The code of this tool declares “%(declared)s”. You can make it "
                        "stricter, but not looser than that."
                    )
                    % {"declared": TIER_LABELS[declared.tier]}
                }
            )
