"""What every test may use: real services, and people."""

import os

import django
import pytest

from tests.embedded import TestServices

# The services come first: Django reads its settings once, and other conftests import models.
# (So pyproject.toml does not name the settings: pytest-django would read them before this.)
services = TestServices()
os.environ["DJANGO_SETTINGS_MODULE"] = "agentruns.settings"
django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402

PASSWORD = "correct horse battery staple"


def pytest_unconfigure() -> None:
    services.stop()


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
    person.groups.add(Group.objects.get_or_create(name="reviewers")[0])
    return person


@pytest.fixture
def admin(db: None) -> User:
    """Tags tools and sets policy."""
    return User.objects.create_superuser("admin", password=PASSWORD, first_name="Ada")
