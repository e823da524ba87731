from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from agentruns import pausepoints


class AgentrunsConfig(AppConfig):
    name = "agentruns"
    verbose_name = _("Runs")

    def ready(self) -> None:
        pausepoints.install_from_settings()
