from importlib import import_module

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CompensationConfig(AppConfig):
    name = "compensation"
    verbose_name = _("Undo")

    def ready(self) -> None:
        """A run does not go on while what it did is being undone."""
        import_module("agentruns.protocol.resume").GUARDS.append(
            import_module("compensation.gate").must_not_be_undoing
        )
