"""The audit of the registry: what each tool promises, and every gap in it."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import Error, register

from tools import registry, verbs
from tools.contract import Tier
from tools.registry import RegisteredTool


def gaps(item: RegisteredTool) -> list[str]:
    """Everything that keeps this tool from being used safely; empty if it is complete.

    Registration refuses most of these; the audit looks again, since an implementation can lose
    a verb afterwards (a base class that changed, a decorator that hides it).
    """
    found = registry.undo_gaps(item.name, item.tier, item.impl) + verbs.gaps(item.name, item.impl)
    if item.timeout <= 0:
        found.append(f"Tool “{item.name}” has no deadline: write timeout=<seconds>.")
    if item.has_prepare and not callable(getattr(item.impl, "void", None)):
        found.append(
            f"Tool “{item.name}” makes drafts that nobody can drop: write void(self, ctx, draft)."
        )
    if item.tier is not Tier.READ_ONLY and not item.undo_note:
        found.append(
            f"Tool “{item.name}” does not say what undo means: write undo_note, one sentence."
        )
    return found


@register("tools")
def every_tool_is_complete(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[Error]:
    """System check: one error per gap."""
    return [
        Error(gap, obj=item.name, id="tools.E001") for item in registry.all() for gap in gaps(item)
    ]
