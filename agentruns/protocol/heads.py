"""Heads: the newest events of all runs, chained to each other, a moment after they were written.

Guarantees that a run whose ledger was cut back, or which was taken out, is missed by what the
chain says of it, and that such a run acts no more. No run waits for the chain: the event's trigger
leaves a note, and this adds what the notes say, under a lock of its own.
"""

import structlog
from django.db import transaction

from agentruns.models import LedgerHead, Run
from agentruns.models.heads import CHAINING, IS_WHOLE
from tools import prepared

CUT_BACK = "ledger_cut_back"
BATCH = 5000

_TAKE = """
DELETE FROM agentruns_unchained WHERE id IN (
  SELECT id FROM agentruns_unchained ORDER BY id LIMIT %s)
RETURNING run_id"""

_CHAIN = f"""
INSERT INTO agentruns_ledgerhead (run_id, seq, head)
SELECT r.id, r.ledger_seq, r.ledger_head FROM agentruns_run r
 WHERE r.id = ANY(%s) AND {IS_WHOLE}
   AND NOT EXISTS (SELECT 1 FROM agentruns_ledgerhead h
                    WHERE h.run_id = r.id AND h.seq = r.ledger_seq)
 ORDER BY r.id"""  # noqa: S608  (constants)

_NOT_WHOLE = f"SELECT r.id FROM agentruns_run r WHERE r.id = ANY(%s) AND NOT {IS_WHOLE}"  # noqa: S608

log = structlog.get_logger(__name__)


def chain_heads() -> int:
    """Add the heads of the runs that have new events; returns how many. Nothing, if somebody else
    is at it.
    """
    with transaction.atomic(durable=True):
        if not prepared.row(f"SELECT pg_try_advisory_xact_lock({CHAINING})")[0]:
            return 0
        run_ids = sorted({run_id for (run_id,) in prepared.run(_TAKE, [BATCH]).fetchall()})
        if not run_ids:
            return 0
        added: int = prepared.run(_CHAIN, [run_ids]).rowcount
        for (run_id,) in prepared.run(_NOT_WHOLE, [run_ids]).fetchall():
            log.error("ledger.cut_back", run_id=run_id)
        return added


def is_whole(run: Run) -> bool:
    """Whether the run's ledger still has all that the chain knows of it. Raises the alarm if not:
    what was cut off may have been done already.
    """
    whole: bool = prepared.row(
        f"SELECT {IS_WHOLE} FROM agentruns_run r WHERE r.id = %s",  # noqa: S608
        [run.pk],
    )[0]
    if not whole:
        log.error("ledger.cut_back", run_id=run.pk)
    return whole


def newest() -> LedgerHead | None:
    """The head of the chain: whoever keeps it elsewhere can tell later that nothing was cut off."""
    return LedgerHead.objects.order_by("-number").first()
