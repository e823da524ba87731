import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django.fixtures import Settings

from agentruns.models import Agent
from agentruns.rights import is_reviewer, stops_all
from tools.models import Tool
from tools.world import scenarios

pytestmark = pytest.mark.django_db


def test_it_makes_three_people_an_agent_per_scenario_and_the_tools() -> None:
    call_command("load_demo")
    ana, omar, ada = (User.objects.get(username=name) for name in ("ana", "omar", "ada"))
    assert [person.get_full_name() for person in (ana, omar, ada)] == [
        "Ana Berg",
        "Omar Haddad",
        "Ada Lind",
    ]
    assert [is_reviewer(person) for person in (ana, omar, ada)] == [False, True, False]
    assert [stops_all(person) for person in (ana, omar, ada)] == [False, False, True]
    assert not any(person.has_usable_password() for person in (ana, omar, ada))
    inbox = Agent.objects.get(slug="inbox")
    assert (inbox.model, inbox.is_listed) == ("demo:inbox", True)
    assert set(inbox.tools) <= set(Tool.objects.values_list("name", flat=True))
    assert Agent.objects.count() == len(scenarios.load_all())


def test_doing_it_again_changes_nothing_that_somebody_edited() -> None:
    call_command("load_demo")
    Agent.objects.filter(slug="inbox").update(name="Ours", tools=["mail.search"])
    User.objects.filter(username="omar").update(is_active=False)
    call_command("load_demo")
    inbox = Agent.objects.get(slug="inbox")
    assert (inbox.name, inbox.tools) == ("Ours", ["mail.search"])
    assert not User.objects.get(username="omar").is_active
    assert User.objects.filter(username__in=("ana", "omar", "ada")).count() == 3


def test_people_have_the_password_that_was_set_for_them(settings: Settings) -> None:
    settings.DEMO_PASSWORD = "for the demo only"
    call_command("load_demo")
    assert User.objects.get(username="ana").check_password("for the demo only")


def test_elsewhere_than_in_a_demo_it_refuses(settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="DEMO is 0"):
        call_command("load_demo")
    assert not User.objects.filter(username="ana").exists()
