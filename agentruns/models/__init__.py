from agentruns.models.agent import Agent
from agentruns.models.call import CallItem, ToolCall
from agentruns.models.checkpoint import Checkpoint
from agentruns.models.idempotency import IdempotencyKey
from agentruns.models.ledger import LedgerEvent
from agentruns.models.limits import LIMITS, Limits
from agentruns.models.output import Output
from agentruns.models.run import Grant, Run, StopRequest, Thread

__all__ = [
    "LIMITS",
    "Agent",
    "CallItem",
    "Checkpoint",
    "Grant",
    "IdempotencyKey",
    "LedgerEvent",
    "Limits",
    "Output",
    "Run",
    "StopRequest",
    "Thread",
    "ToolCall",
]
