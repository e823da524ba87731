"""Addressable ids: a prefix that says what it is, then a ULID (sortable by time of birth)."""

import secrets
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32
LENGTH = 26


def _ulid() -> str:
    return _text((time.time_ns() // 1_000_000) << 80 | secrets.randbits(80))


def _text(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def run_id() -> str:
    return f"run_{_ulid()}"


def run_id_from(digest: bytes) -> str:
    """The id of a run that is named by what was asked for: the same digest, the same run."""
    number = int.from_bytes(digest[:16])
    return f"run_{_text(number)}"


def thread_id() -> str:
    return f"thr_{_ulid()}"


def call_id() -> str:
    return f"call_{_ulid()}"


def undo_id() -> str:
    """One request of a person to undo some calls."""
    return f"undo_{_ulid()}"


def compensation_id() -> str:
    return f"comp_{_ulid()}"


def approval_id() -> str:
    return f"appr_{_ulid()}"


def request_id() -> str:
    """The idempotency key that goes to the outside system, the same over every retry."""
    return f"req_{_ulid()}"
