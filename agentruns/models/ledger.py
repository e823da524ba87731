"""The ledger's events: append-only, one order per run, each chained to the one before."""

import pgtrigger
from django.db import models

from agentruns.models import keeping
from agentruns.models.call import ToolCall
from agentruns.models.run import Run

# The text that an event's hash is taken of. verify_ledger evaluates the same expression.
HASHED = """concat_ws(E'\\n', {row}.prev_hash, {row}.run_id, {row}.seq,
    (extract(epoch from {row}.at) * 1000000)::bigint, {row}.kind,
    coalesce({row}.call_id, ''), {row}.actor, {row}.data::text, {row}.sets::text)"""

HASH = f"encode(sha256(convert_to({HASHED}, 'UTF8')), 'hex')"

# Number, time and hash are the database's work: it costs one statement instead of three, no
# writer can forget it, and locking the run's row here keeps one order even for raw SQL.
CHAIN_FUNC = f"""
    SELECT r.ledger_seq + 1, r.ledger_head INTO NEW.seq, NEW.prev_hash
      FROM agentruns_run r WHERE r.id = NEW.run_id FOR NO KEY UPDATE;
    NEW.at := clock_timestamp();
    NEW.hash := {HASH.format(row="NEW")};
    UPDATE agentruns_run SET ledger_seq = NEW.seq, ledger_head = NEW.hash WHERE id = NEW.run_id;
    INSERT INTO agentruns_unchained (run_id) VALUES (NEW.run_id);
    RETURN NEW;
"""  # noqa: S608  (constants)


class LedgerEvent(models.Model):
    """A fact: who did what, when, and what people read of the rows since then (`sets`, see
    models/shown.py). `seq`, `at` and the hashes are filled by the database.
    """

    # No index of its own: the unique constraint begins with it.
    run = models.ForeignKey(Run, models.PROTECT, related_name="events", db_index=False)
    seq = models.PositiveBigIntegerField(default=0)
    at = models.DateTimeField(null=True)
    kind = models.CharField(max_length=40)
    call = models.ForeignKey(
        ToolCall, models.PROTECT, null=True, related_name="events", db_index=False
    )
    actor = models.CharField(max_length=200)
    data = models.JSONField(default=dict)
    sets = models.JSONField(default=dict)
    prev_hash = models.CharField(max_length=64, blank=True, default="")
    hash = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering = ["run", "seq"]
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="one_event_per_seq")]
        # A plain one: a foreign key of text would bring a second index, for LIKE.
        indexes = [models.Index(fields=["call"], name="events_of_a_call")]
        triggers = [
            pgtrigger.Trigger(
                name="chain",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=CHAIN_FUNC,
            ),
            *keeping.append_only("append_only"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.seq} {self.kind}"
