from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from agentruns import checks, pausepoints


class AgentrunsConfig(AppConfig):
    name = "agentruns"
    verbose_name = _("Runs")

    def ready(self) -> None:
        assert checks  # importing it has registered them
        pausepoints.install_from_settings()
