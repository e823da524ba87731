from agentruns.models.account import Account
from agentruns.models.agent import Agent
from agentruns.models.call import CallItem, ToolCall
from agentruns.models.checkpoint import Checkpoint
from agentruns.models.heads import LedgerHead, Unchained
from agentruns.models.idempotency import IdempotencyKey
from agentruns.models.ledger import LedgerEvent
from agentruns.models.output import Output
from agentruns.models.run import Grant, Run, StopRequest, Thread
from agentruns.models.session import Session
from agentruns.models.terms import LIMITS, TERMS, Terms

__all__ = [
    "LIMITS",
    "TERMS",
    "Account",
    "Agent",
    "CallItem",
    "Checkpoint",
    "Grant",
    "IdempotencyKey",
    "LedgerEvent",
    "LedgerHead",
    "Output",
    "Run",
    "Session",
    "StopRequest",
    "Terms",
    "Thread",
    "ToolCall",
    "Unchained",
]
