"""Grants: the authority that a run acts under, issued by a person and revoked by Stop.

Guarantees one living grant per run, which covers the agent's tools at the moment of issue.
"""

from typing import Any

from agentruns.models import Grant, Run
from tools.contract import Tier


def issue(run: Run, *, by: Any) -> Grant:
    """Under the run's lock: let the run use its agent's tools, in the name of `by`."""
    return Grant.objects.create(
        run=run,
        tools=run.agent.tools,
        tiers=[tier.value for tier in Tier],
        issued_by=by,
    )
