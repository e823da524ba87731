"""Take tools from a source, and hold what waits already against what has changed.

For the admin's page and the command alike; each call finds the same by itself, at the gate.
"""

from typing import Any

from agentruns.protocol.recheck import recheck_tool
from tools.imports import catalogue
from tools.imports.catalogue import Plan
from tools.imports.models import ToolSource
from tools.imports.offers import Listing


def bring_in(source: ToolSource, listing: Listing, *, by: Any) -> Plan:
    """Write what the source offers now; calls of what has changed do not go out any more."""
    done = catalogue.take(source, listing, by=by)
    for name in done.named("changed", "gone", "back"):
        recheck_tool(name, by=by)
    return done
