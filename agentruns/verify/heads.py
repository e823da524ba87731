"""I6, over all runs: the chain of heads is whole, and no run is missing from it or shorter."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db import connection

from agentruns.models.heads import LINK
from agentruns.verify.facts import Breach, Finding, Scope

BATCH = 10_000

_HEADS = f"""
SELECT h.number, h.run_id, h.seq, h.prev_link, h.link, {LINK.format(row="h")} = h.link,
       coalesce(e.hash = h.head, false)
  FROM agentruns_ledgerhead h
  LEFT JOIN agentruns_ledgerevent e ON e.run_id = h.run_id AND e.seq = h.seq
 WHERE h.number > %(after)s AND (%(runs)s::text[] IS NULL OR h.run_id = ANY(%(runs)s))
 ORDER BY h.number LIMIT {BATCH}"""  # noqa: S608  (constants)

# Each event leaves a note for the chain in its transaction: without one, it has to be there.
_LEFT_OUT = """
SELECT r.id, r.ledger_seq FROM agentruns_run r
 WHERE r.ledger_seq > 0 AND (%(runs)s::text[] IS NULL OR r.id = ANY(%(runs)s))
   AND NOT EXISTS (SELECT 1 FROM agentruns_unchained u WHERE u.run_id = r.id)
   AND NOT EXISTS (SELECT 1 FROM agentruns_ledgerhead h
                    WHERE h.run_id = r.id AND h.seq = r.ledger_seq)
 ORDER BY r.id LIMIT 1000"""


class _Head(NamedTuple):
    number: int
    run_id: str
    seq: int
    prev_link: str
    link: str
    is_intact: bool
    is_there: bool


def heads_are_kept(scope: Scope) -> Iterator[Finding]:
    """The chain from its beginning, each of its heads against the ledger; a chain that an operator
    has kept the head of (`scope.expect`) has that one still.
    """
    runs = list(scope.run_ids) or None
    number, link, is_expected = 0, "", scope.expect == ""
    for head in _heads(runs):
        is_next = head.number == number + 1 and head.prev_link == link
        number, link = head.number, head.link
        is_expected = is_expected or scope.expect == f"{number}:{link}"
        if not head.is_there:
            yield Breach(head.run_id, f"event {head.seq} was there (head {number}), and is no more")
        elif not head.is_intact:
            yield Breach(head.run_id, f"head {number} is not what was written")
        elif not is_next and runs is None:
            yield Breach(head.run_id, f"head {number} is not chained to the one before")
        else:
            yield None
    if not is_expected:
        yield Breach("", f"the chain of heads does not have {scope.expect}")
    for run_id, seq in _rows(_LEFT_OUT, runs=runs):
        yield Breach(run_id, f"event {seq} is not in the chain of heads, and nobody is to add it")


def _heads(runs: list[str] | None) -> Iterator[_Head]:
    after = 0
    while found := _rows(_HEADS, after=after, runs=runs):
        for row in found:
            head = _Head(*row)
            after = head.number
            yield head


def _rows(sql: str, **params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()
