"""The chain over the heads of all runs: a run that was cut back, or taken out, is missed there."""

import pgtrigger
from django.db import models

from agentruns.models import keeping

# The text that a link is taken of. verify_ledger evaluates the same expression.
LINKED = """concat_ws(E'\\n', {row}.prev_link, {row}.number,
    (extract(epoch from {row}.at) * 1000000)::bigint, {row}.run_id, {row}.seq, {row}.head)"""

LINK = f"encode(sha256(convert_to({LINKED}, 'UTF8')), 'hex')"

# One at a time: whoever adds heads holds this lock, and no run waits for it.
CHAINING = "hashtextextended('agentruns chain of heads', 0)"

# Whether the ledger of the run `r` still has the newest of its heads in the chain.
IS_WHOLE = """coalesce((
  SELECT EXISTS (SELECT 1 FROM agentruns_ledgerevent e
                  WHERE e.run_id = h.run_id AND e.seq = h.seq AND e.hash = h.head)
         AND h.seq <= r.ledger_seq
    FROM agentruns_ledgerhead h WHERE h.run_id = r.id ORDER BY h.seq DESC LIMIT 1), true)"""

LINK_FUNC = f"""
    PERFORM pg_advisory_xact_lock({CHAINING});
    SELECT h.number + 1, h.link INTO NEW.number, NEW.prev_link
      FROM agentruns_ledgerhead h ORDER BY h.number DESC LIMIT 1;
    NEW.number := coalesce(NEW.number, 1);
    NEW.prev_link := coalesce(NEW.prev_link, '');
    NEW.at := clock_timestamp();
    NEW.link := {LINK.format(row="NEW")};
    RETURN NEW;
"""  # noqa: S608  (constants)


class LedgerHead(models.Model):
    """The newest event of a run at some moment. `head` is its hash; all but run, event and hash is
    filled by the database. Written by agentruns.protocol.heads only.

    No foreign key: it outlasts a run that somebody has taken out.
    """

    number = models.PositiveBigIntegerField(primary_key=True)
    at = models.DateTimeField()
    run_id = models.CharField(max_length=40)
    seq = models.PositiveBigIntegerField()
    head = models.CharField(max_length=64)
    prev_link = models.CharField(max_length=64, blank=True, default="")
    link = models.CharField(max_length=64)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["run_id", "seq"], name="one_head_per_event")]
        triggers = [
            pgtrigger.Trigger(
                name="link",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=LINK_FUNC,
            ),
            *keeping.append_only("head_is_kept"),
        ]

    def __str__(self) -> str:
        return f"{self.number}:{self.link}"


class Unchained(models.Model):
    """A run has events that the chain of heads does not know yet. The trigger of an event adds a
    row, and waits for nobody; whoever chains takes it away.
    """

    run_id = models.CharField(max_length=40)

    def __str__(self) -> str:
        return self.run_id
