"""The demo's people and agents. Loading them again is safe, and changes nothing that is there:
somebody may have edited it since.
"""

from decimal import Decimal

from django.conf import settings
from django.contrib.auth.models import Group, User

from agentruns.models import Agent
from agentruns.models.agent import DEMO
from agentruns.rights import REVIEWERS
from tools.world import scenarios
from tools.world.scenarios import Scenario

PRICE_PER_MILLION_TOKENS = Decimal(10)  # US dollars; what a large model costs about


def load() -> None:
    """Make what is missing: an owner, a reviewer, an admin, and an agent for each scenario."""
    person("ana", "Ana", "Berg")
    person("omar", "Omar", "Haddad", reviews=True)
    person("ada", "Ada", "Lind", administers=True)
    for scenario in scenarios.load_all().values():
        _agent(scenario)


def person(
    username: str,
    first_name: str,
    last_name: str,
    *,
    reviews: bool = False,
    administers: bool = False,
) -> User:
    """Somebody of the demo. They sign in by a link, or with DEMO_PASSWORD where it is set."""
    names = {"first_name": first_name, "last_name": last_name}
    rights = {"is_staff": administers, "is_superuser": administers}
    found, is_new = User.objects.get_or_create(username=username, defaults=names | rights)
    if is_new:
        found.set_unusable_password()
        found.save(update_fields=["password"])
    # Setting the same one again would sign them out everywhere.
    if settings.DEMO_PASSWORD and not found.check_password(settings.DEMO_PASSWORD):
        found.set_password(settings.DEMO_PASSWORD)
        found.save(update_fields=["password"])
    if reviews:
        found.groups.add(Group.objects.get_or_create(name=REVIEWERS)[0])
    return found


def _agent(scenario: Scenario) -> None:
    Agent.objects.get_or_create(
        slug=scenario.name,
        defaults={
            "name": scenario.agent.name,
            "description": scenario.agent.description,
            "example_goal": scenario.goal,
            "model": f"{DEMO}{scenario.name}",
            "tools": list(scenario.agent.tools),
            "price_per_million_tokens": PRICE_PER_MILLION_TOKENS,
            "is_listed": scenario.listed,
        },
    )
