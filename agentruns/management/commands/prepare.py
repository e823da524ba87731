"""Bring the database up to date: tables, the rows of tools, and in a demo its people and agents."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Migrate, make a row for each tool, and load the demo (DEMO=1). Doing it again is safe."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        call_command("sync_tools")
        if settings.DEMO:
            call_command("load_demo")
