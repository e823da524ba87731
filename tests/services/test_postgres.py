import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from agentruns.services.postgres import Postgres


@pytest.fixture
def postgres(data_dir: Path) -> Iterator[Postgres]:
    server = Postgres(data_dir, durable=False)
    server.start()
    yield server
    server.stop()


def _ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
        return row[0] if row else None


def test_data_is_there_after_a_second_start(postgres: Postgres) -> None:
    url = postgres.ensure_database("kept")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE facts AS SELECT 42 AS n")
    postgres.stop()
    postgres.start()
    assert _ask(postgres.ensure_database("kept"), "SELECT n FROM facts") == 42


def test_it_is_set_up_for_the_ledger(postgres: Postgres) -> None:
    url = postgres.url("postgres")
    assert _ask(url, "SHOW max_connections") == "200"
    assert _ask(url, "SHOW max_prepared_transactions") == "20"
    assert _ask(url, "SHOW track_commit_timestamp") == "on"
    assert _ask(url, "SHOW listen_addresses") == ""


def test_data_that_matters_is_written_to_disk(data_dir: Path) -> None:
    server = Postgres(data_dir)
    server.start()
    assert _ask(server.url("postgres"), "SHOW fsync") == "on"
    server.stop()


def test_a_killed_server_comes_back_with_its_data(postgres: Postgres) -> None:
    url = postgres.ensure_database("kept")
    assert postgres.process is not None
    postgres.process.kill()
    postgres.wait_until_ready()
    assert _ask(url, "SELECT 1") == 1


def test_a_lock_file_whose_number_belongs_to_another_program_is_repaired(
    postgres: Postgres, data_dir: Path
) -> None:
    postgres.stop()
    stale = [os.getpid(), data_dir / "postgres", 1, 5432, data_dir / "postgres", "", "1 1", "ready"]
    (data_dir / "postgres" / "postmaster.pid").write_text("\n".join(map(str, stale)) + "\n")
    (data_dir / "postgres" / ".s.PGSQL.5432.lock").write_text(f"{os.getpid()}\n")
    postgres.start()
    assert _ask(postgres.url("postgres"), "SELECT 1") == 1


def test_an_initialisation_that_was_killed_is_begun_again(data_dir: Path) -> None:
    half = data_dir / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18")
    server = Postgres(data_dir, durable=False)
    server.start()
    assert _ask(server.url("postgres"), "SELECT 1") == 1
    server.stop()


def test_a_path_too_long_for_a_socket_gets_a_short_one(data_dir: Path) -> None:
    server = Postgres(data_dir / ("long" * 25), durable=False)
    server.start()
    short = Path(server.url("postgres").partition("host=")[2].replace("%2F", "/"))
    assert _ask(server.url("postgres"), "SELECT 1") == 1
    assert short.stat().st_mode & 0o077 == 0
    server.stop()
    assert not short.exists()


def test_a_clean_stop_needs_no_recovery(postgres: Postgres, data_dir: Path) -> None:
    assert postgres.process is not None
    assert postgres.process.spec.stop_signal == signal.SIGINT
    postgres.stop()
    postgres.start()
    postgres.stop()
    log = (data_dir / "logs" / "postgres.log").read_text()
    assert "was not properly shut down" not in log


def test_django_reaches_it_by_its_address() -> None:
    assert settings.DATABASES["default"]["OPTIONS"]["host"].endswith("/postgres")
