"""The admin of the core: agents to edit, the ledger to read, people to manage."""

from agentruns.admin.agents import AgentAdmin
from agentruns.admin.base import ReadOnlyAdmin
from agentruns.admin.people import GroupAdmin, UserAdmin
from agentruns.admin.runs import (
    CallItemAdmin,
    CheckpointAdmin,
    GrantAdmin,
    LedgerEventAdmin,
    OutputAdmin,
    RunAdmin,
    StopRequestAdmin,
    ToolCallAdmin,
)
from agentruns.admin.sources import ToolSourceAdmin
from agentruns.admin.tools import ToolAdmin

__all__ = [
    "AgentAdmin",
    "CallItemAdmin",
    "CheckpointAdmin",
    "GrantAdmin",
    "GroupAdmin",
    "LedgerEventAdmin",
    "OutputAdmin",
    "ReadOnlyAdmin",
    "RunAdmin",
    "StopRequestAdmin",
    "ToolAdmin",
    "ToolCallAdmin",
    "ToolSourceAdmin",
    "UserAdmin",
]
