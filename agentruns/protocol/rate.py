"""Rate limits: how many calls of one tool may go out in an hour.

Guarantees that the limit holds over all runs and processes at once: whoever asks has the tool to
themselves until their transaction ends. Asked by the gate, and only for a tool with a limit.
"""

from datetime import datetime, timedelta

from agentruns.states import CALL
from tools import prepared

WINDOW = timedelta(hours=1)

# An advisory lock of two numbers: the first says that it is ours.
ALONE = "SELECT pg_advisory_xact_lock(7410, hashtext(%s))"
# By a statement of its own, which sees what was committed while the lock was waited for. What has
# passed the gate has ended since, or is open: there is an index for either, and it is of use with
# the time at which the statement began, which is after the wait as well.
LAST_BUT = f"""
SELECT gate_passed_at FROM (
    SELECT gate_passed_at FROM agentruns_toolcall
     WHERE tool = %s AND ended_at > statement_timestamp() - %s::interval
    UNION ALL
    SELECT gate_passed_at FROM agentruns_toolcall
     WHERE tool = %s AND ended_at IS NULL
       AND state NOT IN ({", ".join(f"'{state}'" for state in sorted(CALL.terminal))})) passed
 WHERE gate_passed_at > statement_timestamp() - %s::interval
 ORDER BY gate_passed_at DESC OFFSET %s LIMIT 1"""  # noqa: S608  (constants)


def room_at(tool: str, limit: int) -> datetime | None:
    """When one more call of `tool` may go out, if `limit` may in an hour; None if it may now."""
    prepared.run(ALONE, [tool])
    found = prepared.row(LAST_BUT, [tool, WINDOW, tool, WINDOW, limit - 1])
    return found[0] + WINDOW if found else None
