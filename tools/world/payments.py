"""A payment service in the usual shape: authorise, capture, void, refund.

Like the small services its record is also its memory. It takes an Idempotency-Key with each
change, and answers the same key again with what the first one did; an authorisation keeps what
the caller put into its `metadata`. Money only moves with a capture and with a refund.
"""

import threading
from pathlib import Path
from typing import Any

from tools.journal import Journal
from tools.world import journal
from tools.world.seeds import DECLINED_CUSTOMERS
from tools.world.services import Answer

LIMIT = 1_000_000  # minor units, for one payment
_FIELDS = ("id", "amount", "currency", "customer", "reference", "key", "metadata")


class Payments:
    """Authorisations with their captures; each of them refundable, at once or in parts."""

    def __init__(self, world_dir: Path) -> None:
        self._journal = Journal(world_dir / journal.PAYMENTS)
        self._lock = threading.Lock()
        self._authorizations: dict[str, dict[str, Any]] = {}
        self._refunds: dict[str, dict[str, Any]] = {}  # by key
        for entry in self._journal.entries():
            self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "authorized":
            made = {name: entry[name] for name in _FIELDS}
            state = {"status": "authorized", "capture": None, "refunded": 0}
            self._authorizations[entry["id"]] = made | state
            return
        held = self._authorizations[entry["id"]]
        if entry["event"] == "voided":
            held["status"] = "voided"
        elif entry["event"] == "captured":
            held |= {"status": "captured", "capture": entry["capture"]}
        else:
            held["refunded"] += entry["amount"]
            if held["refunded"] == held["amount"]:
                held["status"] = "refunded"
            self._refunds[entry["key"]] = {name: entry[name] for name in ("refund", "amount")}

    def authorize(self, body: dict[str, Any], key: str) -> Answer:
        """Reserve an amount: {amount (minor units), currency, customer, reference, metadata}."""
        if problem := _problem(body):
            return 422, {"error": problem}
        with self._lock:
            for held in self._authorizations.values():
                if key and held["key"] == key:
                    return 200, dict(held)
            if body["customer"] in DECLINED_CUSTOMERS:
                return 402, {"error": "the bank of this customer declined the payment"}
            if body["amount"] > LIMIT:
                return 402, {"error": "the amount is above the limit for one payment"}
            fields = {name: body[name] for name in ("amount", "currency", "customer", "reference")}
            fields |= {"key": key, "metadata": body.get("metadata") or {}}
            number = f"A-{len(self._authorizations) + 1}"
            self._apply(self._journal.append("authorized", id=number, **fields))
            return 201, dict(self._authorizations[number])

    def capture(self, number: str, key: str) -> Answer:
        """Take the whole reserved amount; a repeat is no second one."""
        return self._settle(number, "captured", capture=number.replace("A-", "C-"), key=key)

    def void(self, number: str, key: str) -> Answer:
        """Let go of a reservation; a repeat is no change."""
        return self._settle(number, "voided", key=key)

    def refund(self, capture: str, body: dict[str, Any], key: str) -> Answer:
        """Give back `amount` of a capture, by default all of it."""
        with self._lock:
            held = self._authorizations.get(capture.replace("C-", "A-"))
            if held is None or held["capture"] != capture:
                return 404, {"error": f"there is no capture {capture}"}
            if key and key in self._refunds:
                return 200, self._refunds[key] | {"refunded": held["refunded"]}
            amount = body.get("amount", held["amount"])
            left = held["amount"] - held["refunded"]
            if not _is_amount(amount) or amount > left:
                return 409, {"error": f"only {left} is left", "refunded": held["refunded"]}
            refund = f"R-{len(self._refunds) + 1}"
            self._apply(
                self._journal.append(
                    "refunded", id=held["id"], refund=refund, amount=amount, key=key or refund
                )
            )
            return 201, {"refund": refund, "amount": amount, "refunded": held["refunded"]}

    def find(self, key: str | None, status: str | None) -> Answer:
        with self._lock:
            found = [
                dict(held)
                for held in self._authorizations.values()
                if key in (None, held["key"]) and status in (None, held["status"])
            ]
        return 200, {"authorizations": found}

    def _settle(self, number: str, event: str, **data: Any) -> Answer:
        with self._lock:
            held = self._authorizations.get(number)
            if held is None:
                return 404, {"error": f"there is no authorization {number}"}
            if held["status"] == event or (event == "captured" and held["capture"]):
                return 200, dict(held)
            if held["status"] != "authorized":
                return 409, {"error": f"it is {held['status']}", "authorization": dict(held)}
            self._apply(self._journal.append(event, id=number, **data))
            return 201, dict(held)


def _problem(body: dict[str, Any]) -> str:
    """What is wrong with the body of an authorisation, "" if nothing is."""
    if not _is_amount(body.get("amount")):
        return "amount must be a whole number of minor units, at least 1"
    for name in ("currency", "customer", "reference"):
        if not isinstance(body.get(name), str) or not body[name]:
            return f"{name} must be text"
    return "" if isinstance(body.get("metadata") or {}, dict) else "metadata must be an object"


def _is_amount(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
