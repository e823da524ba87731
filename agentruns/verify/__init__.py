"""Is the ledger true? The invariants of the stop protocol (§12), over any database."""

from agentruns.verify.facts import Breach, Scope
from agentruns.verify.invariants import INVARIANTS, Result, verify

__all__ = ["INVARIANTS", "Breach", "Result", "Scope", "verify"]
