from agentruns.models.agent import Agent
from agentruns.models.call import ToolCall
from agentruns.models.idempotency import IdempotencyKey
from agentruns.models.ledger import LedgerEvent
from agentruns.models.output import Output
from agentruns.models.run import Grant, Run, StopRequest, Thread

__all__ = [
    "Agent",
    "Grant",
    "IdempotencyKey",
    "LedgerEvent",
    "Output",
    "Run",
    "StopRequest",
    "Thread",
    "ToolCall",
]
