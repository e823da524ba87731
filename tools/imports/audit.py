"""Every gap between what an admin has let through and what was imported."""

from tools.imports.models import ImportedTool
from tools.models import Tool


def gaps() -> dict[str, list[str]]:
    """By name, what is wrong with imported tools that are enabled. The gate refuses their calls."""
    enabled = Tool.objects.exclude(source=Tool.Source.CODE).filter(enabled=True)
    there = {row.name: row for row in ImportedTool.objects.filter(is_gone=False)}
    found: dict[str, list[str]] = {}
    for policy in enabled:
        row = there.get(policy.name)
        if row is None:
            said = f"Tool “{policy.name}” is enabled, and its source does not offer it any more."
        elif row.revision != policy.imported_revision:
            said = f"Tool “{policy.name}” is enabled, and is not what an admin has looked at."
        elif not policy.is_tagged:
            said = f"Tool “{policy.name}” is enabled, and no admin has tagged it."
        else:
            continue
        found[policy.name] = [f"{said} Disable it, and look at its source again."]
    return found
