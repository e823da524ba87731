"""(d) A long ledger: one real run, copied until there are a million events.

The copies are rows as the protocol would have written them, hash chain and all, so verify_ledger
finds nothing to say about them.
"""

from typing import Any

from django.db import connection, models, transaction

from agentruns.models import Grant, LedgerEvent, Output, Run, Thread, ToolCall
from agentruns.models.ledger import HASH
from agentruns.protocol.execute import execute_call
from tests.bench.play import EFFECT, Player

CALLS = 3

# The same id with its last eight characters replaced by the number of the copy.
COPIED = "left({0}, -8) || lpad(n::text, 8, '0')"

# Each row of the template's, times the number of copies, with some columns changed. All others
# come along, whatever they are.
COPY = """
INSERT INTO {table}
SELECT c.* FROM {table} t, generate_series(1, %(copies)s) n,
       LATERAL jsonb_populate_record(t, jsonb_build_object({changed})) c
 WHERE t.{which} = %(of)s
"""

# Event after event, because each hash is of the one before.
CHAIN = f"""
INSERT INTO agentruns_ledgerevent (run_id, seq, at, kind, call_id, actor, data, sets,
  prev_hash, hash)
WITH RECURSIVE copied AS (
  SELECT {COPIED.format("t.run_id")} AS run_id, seq, at, kind,
         {COPIED.format("t.call_id")} AS call_id, actor, data,
         regexp_replace(sets::text, '"((?:req|thr)_[^"]*)[^"]{{8}}"',
                        '"\\1' || lpad(n::text, 8, '0') || '"', 'g')::jsonb AS sets
    FROM agentruns_ledgerevent t, generate_series(1, %(copies)s) n
   WHERE t.run_id = %(of)s
), chain AS (
  SELECT c.*, '' AS prev_hash, {HASH.format(row="e")} AS hash
    FROM copied c, LATERAL (SELECT c.*, '' AS prev_hash) e WHERE c.seq = 1
  UNION ALL
  SELECT c.*, b.hash, {HASH.format(row="e")}
    FROM chain b JOIN copied c ON c.run_id = b.run_id AND c.seq = b.seq + 1,
         LATERAL (SELECT c.*, b.hash AS prev_hash) e
)
SELECT run_id, seq, at, kind, call_id, actor, data, sets, prev_hash, hash FROM chain
"""

# What belongs to a run: its column that names the run, and the columns that are ids in text.
TABLES: list[tuple[type[models.Model], str, tuple[str, ...]]] = [
    (Thread, "id", ("id",)),
    (Run, "id", ("id", "thread_id")),
    (Grant, "run_id", ("run_id",)),
    (Output, "run_id", ("run_id",)),
    (ToolCall, "run_id", ("id", "run_id", "request_id")),
]

HEADS = """
UPDATE agentruns_run r SET ledger_head = e.hash FROM agentruns_ledgerevent e
 WHERE e.run_id = r.id AND e.seq = r.ledger_seq AND r.ledger_head <> e.hash
"""


def measure(*, events: int) -> dict[str, int]:
    """How many rows of each kind there are now."""
    copied = template()
    fill(copied, events // LedgerEvent.objects.filter(run=copied).count())
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")  # what was written here is not to be paid for by what follows
    kept: dict[str, Any] = {"runs": Run, "calls": ToolCall, "events": LedgerEvent}
    return {name: model.objects.count() for name, model in kept.items()}


def fill(template: Run, copies: int) -> None:
    """Copy the run so many times. Needs a superuser: the triggers keep still meanwhile."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SET LOCAL session_replication_role = replica")
        for model, which, texts in TABLES:
            of = template.thread_id if model is Thread else template.pk
            cursor.execute(_copy(model, which, texts), {"copies": copies, "of": of})
        cursor.execute(CHAIN, {"copies": copies, "of": template.pk})
        cursor.execute(HEADS)
        cursor.execute("INSERT INTO agentruns_unchained (run_id) SELECT id FROM agentruns_run")


def template() -> Run:
    """A run that did a few things and completed."""
    player = Player()
    lease = player.pick_up()
    calls = [player.propose(lease, EFFECT) for _ in range(CALLS)]
    player.finish(lease)
    for call in calls:
        execute_call(call.pk, epoch=call.epoch)
    player.finish(player.think(lease.run_id))
    run = Run.objects.get(pk=lease.run_id)
    assert run.status == "completed"
    return run


def _copy(model: type[models.Model], which: str, texts: tuple[str, ...]) -> str:
    table = model._meta.db_table
    changed = [f"'{name}', {COPIED.format(f't.{name}')}" for name in texts]
    if "id" not in texts:
        changed.append(f"'id', nextval(pg_get_serial_sequence('{table}', 'id'))")
    return COPY.format(table=table, which=which, changed=", ".join(changed))
