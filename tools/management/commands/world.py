import asyncio
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tools.world.server import World, WorldError, serve


class Command(BaseCommand):
    help = "Run the demo world: mail, calendar, git, chat, tickets and a model, on loopback."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        world = World(
            folder=Path(settings.WORLD_DIR),
            archive=Path(settings.MAIL_ARCHIVE),
            http_port=settings.WORLD_HTTP_PORT,
            smtp_port=settings.WORLD_SMTP_PORT,
            caldav_port=settings.WORLD_CALDAV_PORT,
            database=settings.SQL_TOOL_URL,
            files=Path(settings.FILES_DIR),
        )
        try:
            asyncio.run(serve(world, self._announce))
        except WorldError as error:
            raise CommandError(str(error)) from error

    def _announce(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
