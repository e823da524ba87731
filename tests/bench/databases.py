"""More databases on the bench's one server."""

import os
import re

import psycopg
from psycopg import sql


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
