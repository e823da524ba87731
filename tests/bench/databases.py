"""More databases on the bench's one server."""

import os
import re

import psycopg
from psycopg import sql

from agentruns.services.postgres import APPLICATION, SUPERUSER


def as_superuser(url: str) -> str:
    """The address for whoever may make databases, and switch triggers off."""
    return url.replace(f"//{APPLICATION}@", f"//{SUPERUSER}@")


def address(name: str) -> str:
    """The address of another database of the server of DATABASE_URL."""
    return re.sub(r"/[^/?]+(?=\?|$)", f"/{name}", os.environ["DATABASE_URL"], count=1)


def database(name: str) -> str:
    """Make a database unless it is there; return its address."""
    with psycopg.connect(address("postgres"), autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if known.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return address(name)
