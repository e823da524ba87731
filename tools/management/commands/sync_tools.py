from typing import Any

from django.core.management.base import BaseCommand

from tools import policy


class Command(BaseCommand):
    help = "Create the policy row of every registered tool that has none yet."

    def handle(self, *args: Any, **options: Any) -> None:
        created = policy.sync()
        for name in created:
            self.stdout.write(f"created {name}")
        self.stdout.write(f"{len(created)} created")
