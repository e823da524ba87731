"""What people decided, as they saw it."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agentruns import ids
from agentruns.models import ToolCall, keeping
from agentruns.models.shown import Shown, salts_field


class Approval(models.Model):
    """One decision on one exact call: kept for ever, changed never.

    `digest` and `args` are those that the person was shown. Written by review.services only.
    """

    SHOWN = Shown(
        name=lambda approval: f"approval:{approval.pk}",
        facts=("verdict", "digest", "decided_by", "decided_at"),
        content=("args", "summary", "reason"),
    )

    class Verdict(models.TextChoices):
        APPROVED = "approved", _("approved")
        REJECTED = "rejected", _("rejected")

    id = models.CharField(primary_key=True, max_length=40, default=ids.approval_id, editable=False)
    call = models.ForeignKey(
        ToolCall, models.PROTECT, related_name="approvals", verbose_name=_("call")
    )
    verdict = models.CharField(_("decision"), max_length=10, choices=Verdict.choices)
    digest = models.CharField(_("digest of what was shown"), max_length=64)
    args = models.JSONField(_("arguments as shown"), default=dict)
    summary = models.TextField(_("in plain words"), blank=True, default="")
    reason = models.CharField(_("reason"), max_length=500, blank=True, default="")
    salts = salts_field()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", verbose_name=_("decided by")
    )
    decided_at = models.DateTimeField(_("decided at"))

    class Meta:
        ordering = ["-decided_at"]
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        triggers = keeping.append_only("decision_is_kept")

    def __str__(self) -> str:
        return f"{self.get_verdict_display()}: {self.summary}"
