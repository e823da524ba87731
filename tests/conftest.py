"""What every test may use: real services, the whole stack, a browser, and people."""

import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import django
import environ
import pytest

from tests.embedded import TestServices

# A shell has what it starts in the background ignore Ctrl-C; whatever tests start must hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The services come first: Django reads its settings once, and other conftests import models.
# (So pyproject.toml does not name the settings: pytest-django would read them before this.)
services = TestServices()
os.environ["DJANGO_SETTINGS_MODULE"] = "agentruns.settings"
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.contenttypes.models import ContentType  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import TransactionTestCase  # noqa: E402
from django.utils import translation  # noqa: E402

from agentruns.models import Run  # noqa: E402
from agentruns.reminders import reminders  # noqa: E402
from agentruns.rights import REVIEWERS  # noqa: E402
from agentruns.services.stack import Stack  # noqa: E402
from agentruns.verify import Scope, verify  # noqa: E402
from tools import policy  # noqa: E402

# Slow on purpose elsewhere; here every test makes its people anew.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

_FOR_GOOD = {ContentType._meta.db_table, Permission._meta.db_table}  # the same for every test


def _empty(_case: TransactionTestCase) -> None:
    """What a test has committed goes, also from tables that are otherwise never emptied; a row for
    each tool is there again. (Django's own way takes ten times as long, for 35 tables.)
    """
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(";".join(f'DELETE FROM "{name}"' for name in names if name not in _FOR_GOOD))
        cursor.execute("SET LOCAL session_replication_role = origin")
        policy.sync()


TransactionTestCase._fixture_teardown = _empty  # type: ignore[method-assign]

PASSWORD = "correct horse battery staple"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NO_BROWSER = "no Chromium on this machine"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Have the processes of this run begin as this one did: with their services, then Django."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


def pytest_unconfigure() -> None:
    services.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the stack comes first: it takes longest, and nobody waits for it at the end."""
    items.sort(key=lambda item: not any(map(item.get_closest_marker, ("stack", "browser"))))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails on the stack shows what the stack's programs printed meanwhile."""
    report = yield
    used = getattr(item, "funcargs", {}).get("stack")
    if report.failed and isinstance(used, Stack):
        report.sections += printed_since(report.start, used.data_dir / "logs")
    return report


def printed_since(start: float, folder: Path) -> list[tuple[str, str]]:
    """The last lines of each log that has grown since `start`."""
    logs = [log for log in sorted(folder.glob("*.log")) if log.stat().st_mtime >= start]
    return [
        (
            f"{log.name}, its last lines",
            "\n".join(log.read_text(errors="replace").splitlines()[-40:]),
        )
        for log in logs
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if NO_BROWSER in r.longreprtext]
    if skipped:
        terminalreporter.section("BROWSER TESTS DID NOT RUN", red=True, bold=True)
        terminalreporter.line(f"{len(skipped)} tests did not run: {NO_BROWSER}. Install chromium.")


@pytest.fixture(scope="session")
def scratch() -> Path:
    """A folder of this test run. (Pytest's own is closed to the account that Postgres runs as.)"""
    return services.folder.path


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; without one its tests do not run, and fail where CI=true."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(NO_BROWSER)
    return found


@pytest.fixture(scope="session")
def stack(scratch: Path) -> Iterator[Stack]:
    """Web, workers, beat and the world, on data of their own; the model speaks quickly, and what
    the outside takes minutes for takes seconds. Busy with other tests, a driver keeps its lease.
    """
    env = {"MODEL_PACE": "0.2", "LOOKUP_HORIZON_SCALE": str(1 / 60), "LEASE_TTL": "6"}
    with Stack(scratch / "stack", durable=False, env=env) as running:
        yield running


@pytest.fixture
def stack_db(stack: Stack, django_db_blocker: pytest.FixtureRequest) -> Iterator[None]:
    """The models of this process read and write the stack's own database (not with `db`)."""
    at = connection.settings_dict
    before = dict(at)
    there = environ.Env.db_url_config(stack.env["DATABASE_URL"])
    connection.close()
    connection.close_pool()
    at.update(NAME=there["NAME"], OPTIONS=before["OPTIONS"] | there["OPTIONS"])
    with django_db_blocker.unblock():
        yield
        connection.close()
        connection.close_pool()
    at.update(before)


@pytest.fixture
def owner(db: None) -> User:
    """Starts runs and presses Stop."""
    return User.objects.create_user("owner", password=PASSWORD, first_name="Ana")


@pytest.fixture
def outsider(db: None) -> User:
    """Owns other runs, and has no right to the owner's."""
    return User.objects.create_user("outsider", password=PASSWORD, first_name="Oto")


@pytest.fixture
def reviewer(db: None) -> User:
    """Decides what waits for a person."""
    person = User.objects.create_user("reviewer", password=PASSWORD, first_name="Omar")
    person.groups.add(Group.objects.get_or_create(name=REVIEWERS)[0])
    return person


@pytest.fixture
def admin(db: None) -> User:
    """Tags tools and sets policy."""
    return User.objects.create_superuser("admin", password=PASSWORD, first_name="Ada")


@pytest.fixture(autouse=True)
def _nothing_was_rung_for() -> None:
    """What an earlier test's sweeper rang for is no business of this one."""
    reminders.clear()


@pytest.fixture(autouse=True)
def _nobody_read_in_another_language() -> Iterator[None]:
    """A request leaves its reader's language behind in the thread: not for the next test."""
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def _ledger_is_true(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test that made a run, the ledger keeps what the protocol promises."""
    marker = request.node.get_closest_marker("django_db")
    is_ours = "transactional_db" in request.fixturenames or (
        marker is not None and marker.kwargs.get("transaction")
    )
    if is_ours:
        request.getfixturevalue("transactional_db")  # set up first, so it empties the tables last
    yield
    if is_ours and not request.node.get_closest_marker("breaks_ledger"):
        # The world is shared by many tests: of its effects, those of this test's runs count.
        world = request.node.funcargs.get("world")
        run_ids = tuple(Run.objects.values_list("pk", flat=True))
        scope = Scope(world_dir=world.folder if world and run_ids else None, run_ids=run_ids)
        assert [each for result in verify(scope) for each in result.breaches] == []
