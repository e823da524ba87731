from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

from tools.errors import RegistrationError

PACKAGES = "agentruns.tools"  # the group of entry points by which other packages bring tools


class ToolsConfig(AppConfig):
    name = "tools"
    verbose_name = _("Tools")

    def ready(self) -> None:
        """Register the built-in tools, those of other packages, and the system check; find the
        imported ones; keep a Tool row for each tool.
        """
        import_module("tools.builtin")
        for point in entry_points(group=PACKAGES):
            _load(point)
        import_module("tools.checks")
        import_module("tools.imports.loader").install()
        post_migrate.connect(_sync_rows, sender=self)


def _load(point: EntryPoint) -> None:
    """Import the module of an entry point, which registers its tools. Raises RegistrationError."""
    package = point.dist.name if point.dist else point.value
    try:
        point.load()
    except RegistrationError as error:
        raise RegistrationError(f"The package “{package}”: {error}") from error
    except Exception as error:
        raise RegistrationError(
            f"The package “{package}” offers tools in “{point.value}”, which cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error


def _sync_rows(**kwargs: Any) -> None:
    # By import at run time: models may not be imported before every app is loaded.
    import_module("tools.policy").sync()
