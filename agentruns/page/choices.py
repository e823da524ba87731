"""The agents that people may choose from, with what each may do and how far it can be undone."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from agentruns.models import Agent
from agentruns.page.spending import at_limit, limit_words
from agentruns.page.words import tier_words
from agentruns.protocol.undo import is_by_itself
from tools import registry
from tools.contract import Tier
from tools.policy import Policy, auto_undo, effective


@dataclass(frozen=True)
class Permission:
    """One tool of an agent, in plain words. `asks`: a person approves each use; `may_ask`: some
    uses, by their arguments. `is_on`: an admin has not switched it off.
    """

    title: str
    explains: str
    tier: str
    tier_words: str
    asks: bool
    may_ask: bool
    is_on: bool


@dataclass(frozen=True)
class Choice:
    agent: Agent
    permissions: list[Permission]
    limits: str = ""
    after_stop: str = ""


def choices() -> list[Choice]:
    """Every agent that is listed, with its tools."""
    return [_choice(agent) for agent in Agent.objects.filter(is_listed=True)]


def _choice(agent: Agent) -> Choice:
    policies = [effective(name) for name in agent.tools]
    return Choice(agent, _permissions(policies), _limits(agent), _after_stop(agent, policies))


def _after_stop(agent: Agent, policies: Sequence[Policy]) -> str:
    """What happens by itself after a Stop; "" where everything waits for a person."""
    says = auto_undo(agent.tools)
    can = [policy.name for policy in policies if policy.tier is Tier.REVERSIBLE]
    if not any(is_by_itself(agent, says[name]) for name in can):
        return ""
    return _("If you stop it, what can be undone is undone by itself.")


def _limits(agent: Agent) -> str:
    """“At most 5,000 tokens, 20 actions. Then it stops.”; "" for an agent without limits."""
    limits = agent.limits
    if not limits:
        return ""
    said = _("At most %(limits)s.") % {"limits": limit_words(limits)}
    return f"{said} {at_limit(agent)}"


def _permissions(policies: Sequence[Policy]) -> list[Permission]:
    found = []
    for policy in policies:
        registered = registry.get(policy.name)
        if registered is None:
            continue
        found.append(
            Permission(
                registered.title,
                registered.explains,
                policy.tier,
                tier_words(policy.tier, policy.name),
                policy.needs_approval,
                registered.asks_by_arguments,
                policy.enabled,
            )
        )
    return found
