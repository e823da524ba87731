"""What an admin fills in to change the policy of one tool, or the tier of several."""

from typing import Any

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from tools import registry
from tools.changes import REASON_LIMIT
from tools.contract import Tier
from tools.models import TIER_LABELS, Tool
from tools.policy import may_set_tier

READ_ONLY_TELLS = _(
    "As read-only it is called at once, and nobody is asked: all that the agent writes into its "
    "arguments goes to that server. Ask for an approval if a person should see them first."
)


def reason_field() -> forms.CharField:
    """Why: asked for at each change, and kept with it."""
    return forms.CharField(
        label=_("Reason"),
        max_length=REASON_LIMIT,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text=_("Why you change it. It is kept, and shown with your name."),
    )


class ToolForm(forms.ModelForm):
    """The policy of one tool. `user` is set by the admin: who may what depends on them."""

    user: Any = None
    reason = reason_field()
    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Tool
        fields = [
            "tier",
            "enabled",
            "dispatch",
            "approvals_needed",
            "approver_group",
            "time_limit",
            "rate_limit",
            "auto_undo",
            "note",
        ]
        widgets = {"note": UnfoldAdminTextareaWidget(attrs={"rows": 2})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["seen"] = self.instance.updated_at.isoformat()
        if "tier" in self.fields:  # not for whoever may only look
            self._offer_tiers(self.fields["tier"])

    def _offer_tiers(self, tier: Any) -> None:
        if self.instance.is_imported:
            tier.help_text = READ_ONLY_TELLS
        unsaid: list[Any] = []
        if not self.instance.is_tagged:  # somebody has to say it, not just leave it
            self.initial["tier"] = ""
            unsaid = [("", _("not tagged yet"))]
        tier.widget.choices = unsaid + [
            (value, label)
            for value, label in tier.choices
            if value and not may_set_tier(self.user, self.instance, Tier(value))
        ]

    def clean_tier(self) -> str:
        tier: str = self.cleaned_data["tier"]
        if why := may_set_tier(self.user, self.instance, Tier(tier)):
            raise forms.ValidationError(why)
        return tier

    def clean(self) -> dict[str, Any]:
        """A page that somebody else has overtaken changes nothing; nor is more asked of a group
        than it can give.
        """
        cleaned: dict[str, Any] = super().clean() or {}
        group, needed = cleaned.get("approver_group"), cleaned.get("approvals_needed") or 1
        members = group.user_set.filter(is_active=True).count() if group else needed
        if members < needed:
            raise forms.ValidationError(
                {
                    "approver_group": ngettext(
                        "The group “%(group)s” has %(n)d member: nothing would ever be approved.",
                        "The group “%(group)s” has %(n)d members: nothing would ever be approved.",
                        members,
                    )
                    % {"group": group, "n": members}
                }
            )
        seen, stands = cleaned.get("seen"), self.initial["seen"]
        if seen and seen != stands:
            raise forms.ValidationError(
                _("Somebody changed this tool since you opened the page. Look at it again.")
            )
        return cleaned


class TierForm(forms.Form):
    """One tier for several tools: for all of them, or for none."""

    tier = forms.ChoiceField(
        label=_("Tier"),
        choices=[(tier.value, label) for tier, label in TIER_LABELS.items()],
        widget=UnfoldAdminSelectWidget,
    )
    reason = reason_field()
    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, rows: list[Tool], user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rows, self.user = rows, user
        if any(row.is_imported for row in rows):
            self.fields["tier"].help_text = READ_ONLY_TELLS
        self.initial["seen"] = " ".join(row.updated_at.isoformat() for row in rows)

    def clean(self) -> dict[str, Any]:
        """A page that somebody else has overtaken changes nothing."""
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("seen") != self.initial["seen"]:
            raise forms.ValidationError(
                _("Somebody changed one of these tools since you opened the page. Look again.")
            )
        return cleaned

    def clean_tier(self) -> Tier:
        """Refuse all where one is refused, and say which."""
        tier = Tier(self.cleaned_data["tier"])
        refused = [(row, why) for row in self.rows if (why := may_set_tier(self.user, row, tier))]
        if refused:
            lines = [
                _("Nothing was changed: some of these tools cannot be “%(tier)s”.")
                % {"tier": TIER_LABELS[tier]},
                *(f"{row.name}: {why}" for row, why in refused),
            ]
            raise forms.ValidationError(lines)
        return tier


def declared_words(row: Tool) -> str:
    """What the code says of the tool's tier."""
    if row.is_imported:
        return gettext("imported: nothing")
    item = registry.get(row.name)
    return str(TIER_LABELS[item.tier] if item else _("no such tool any more"))
