"""Load the demo's people, agents and tool rows."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agentruns import demo
from tools import policy


class Command(BaseCommand):
    help = "Load the demo: three people, an agent per scenario, a row per tool. Repeating is safe."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is not a demo: DEMO is 0, so no demo people are made.")
        policy.sync()
        demo.load()
