from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ToolsConfig(AppConfig):
    name = "tools"
    verbose_name = _("Tools")

    def ready(self) -> None:
        """Register the built-in tools and the system check; keep a Tool row for each tool."""
        import_module("tools.builtin")
        import_module("tools.checks")
        post_migrate.connect(_sync_rows, sender=self)


def _sync_rows(**kwargs: Any) -> None:
    # By import at run time: models may not be imported before every app is loaded.
    import_module("tools.policy").sync()
