"""What the gate looks at: the run, the call, its tool's row, the grant, doubles, the time.

Guarantees that all of it is read under the run's lock, after it was granted, and by the database's
clock. One statement for what would be seven by the ORM: it is asked before every effect, and again
when one has landed.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.contrib.auth import get_user_model

from agentruns.errors import NotFound
from agentruns.models import Grant, Run, ToolCall
from agentruns.models.heads import IS_WHOLE
from agentruns.protocol.advance import IS_DOUBLE
from agentruns.protocol.ledger import OPEN_CALLS, OpenCall, as_open_calls, lock_run_of
from agentruns.states import READY
from tools import prepared
from tools.models import Tool
from tools.prepared import Rows

# What its policy is made of.
OF_TOOL = (
    "name",
    "tier",
    "enabled",
    "dispatch",
    "approvals_needed",
    "approver_group",
    "time_limit",
    "rate_limit",
    "source",
    "imported_revision",
)
# As `fair.claimed_calls` has it.
PLACES = f"""(
  SELECT count(*) FROM agentruns_toolcall other
    JOIN agentruns_run acting ON acting.id = other.run_id
   WHERE acting.owner_id = r.owner_id AND acting.status IN ('running', 'suspended')
     AND other.id <> c.id
     AND (other.state = 'in_flight'
          OR (other.state IN ({", ".join(f"'{state}'" for state in READY)})
              AND other.claim_expires_at > clock_timestamp())))"""  # noqa: S608  (states)


@dataclass(frozen=True)
class Sight:
    """As it is now. `call` has its run and that one's owner at hand.

    `tool`: what an admin has set, if anything. `grant`: the one that lives, if any. `is_double`:
    whether the same effect stands in the thread already; `is_whole`: whether the run's
    ledger has all that the chain of heads knows of it; `places`: how many executors are at other
    calls of the owner.
    """

    run: Run
    call: ToolCall
    now: datetime
    is_double: bool
    is_whole: bool
    places: int
    open_calls: list[OpenCall]
    tool: Tool | None
    grant: Grant | None

    @property
    def others(self) -> list[OpenCall]:
        """The open calls but this one."""
        return [call for call in self.open_calls if call.pk != self.call.pk]


def look(call_id: str, *, at_gate: bool = False) -> Sight:
    """Lock the call's run, then look. `at_gate`: no double of the call passes the gate meanwhile.
    Raises NotFound.
    """
    run = lock_run_of(call_id, alone=at_gate)
    row = prepared.row(_statement(), [call_id])
    if row is None:
        raise NotFound(call_id=call_id)
    now, is_double, is_whole, places, others, *rest = row
    call, owner, tool, grant = prepared.split(rest, _rows())
    run.owner = owner
    call.run = run
    known = (now, is_double, is_whole, places)
    return Sight(run, call, *known, as_open_calls(others), tool, grant)


@cache
def _rows() -> tuple[Rows, ...]:
    owner = Rows(get_user_model(), "id", "username", "first_name", "last_name", "is_active")
    tool = Rows(Tool, *OF_TOOL)
    return Rows(ToolCall), owner, tool, Rows(Grant, "id", "tools", "tiers")


@cache
def _statement() -> str:
    columns = (rows.columns(alias) for rows, alias in zip(_rows(), "cutg", strict=True))
    return f"""
        SELECT clock_timestamp(), {IS_DOUBLE}, {IS_WHOLE}, {PLACES}, {OPEN_CALLS},
               {", ".join(columns)}
          FROM agentruns_toolcall c
          JOIN agentruns_run r ON r.id = c.run_id
          JOIN auth_user u ON u.id = r.owner_id
          LEFT JOIN tools_tool t ON t.name = c.tool
          LEFT JOIN agentruns_grant g ON g.run_id = c.run_id AND g.revoked_at IS NULL
         WHERE c.id = %s
    """  # noqa: S608  (columns)
