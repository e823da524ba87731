from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from agentruns.postgresql.hardening import as_owner, harden


class Command(migrate.Command):
    help = (
        f"{migrate.Command.help} As the owner of the tables (DATABASE_OWNER_URL); afterwards the "
        "application's role (DATABASE_URL) has the rights that it needs, and no others."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        role = connections[alias].settings_dict["USER"]
        with as_owner(alias):
            super().handle(*args, **options)
            with connections[alias].cursor() as cursor:
                harden(cursor, role)
