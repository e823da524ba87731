"""The ledger: one lock per run, one event per change, in the same transaction.

Guarantees that no state changes without its event, and no event without its change (protocol §2).
"""

import json
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import models
from django_fsm import ConcurrentTransition
from psycopg.types.json import Jsonb

from agentruns import doorbell
from agentruns.errors import NotFound
from agentruns.models import Output, Run, StopRequest, ToolCall
from agentruns.models.shown import Sets, merged, seal
from agentruns.states import CALL, OUTPUT, RUN, Machine
from tools import prepared, texts
from tools.storable import storable

AGENT = "agent"
DRIVER = "driver"
EXECUTOR = "executor"
SWEEPER = "sweeper"

REPORT_GRACE = timedelta(seconds=2)  # for a call that used its whole time to say so
SEND_WINDOW = 2.0  # seconds from asking whether to act; look-ups begin much later


PERSON = "user:"


def person(user: Any) -> str:
    """The actor that somebody is: by their id, since a name may become somebody else's."""
    return f"{PERSON}{user.pk}"


def person_id(actor: str) -> int | None:
    """The id of the person that an actor is; None for what is no person."""
    text = actor.removeprefix(PERSON)
    return int(text) if text != actor and text.isdecimal() else None


class Clock(NamedTuple):
    """The database's clock: when this transaction began, and now."""

    began: datetime
    now: datetime


def clock() -> Clock:
    """Read the database's clock. A worker's own clock decides nothing."""
    return Clock(*prepared.row("SELECT transaction_timestamp(), clock_timestamp()"))


def report_by(now: datetime, timeout: float) -> datetime:
    """When a call that may take `timeout` seconds from now is in doubt, if it has not reported."""
    return now + timedelta(seconds=timeout) + REPORT_GRACE


RUNS, CALLS = prepared.Rows(Run), prepared.Rows(ToolCall)
STOPS = prepared.Rows(StopRequest)


def lock_run(run_id: str) -> Run:
    """Lock the run's row, the mutex of its ledger, and read it. Raises NotFound."""
    run = RUNS.first("WHERE t.id = %s FOR NO KEY UPDATE", [run_id])
    if run is None:
        raise NotFound(run_id=run_id)
    return run


def lock_run_if_free(run_id: str) -> Run | None:
    """The same, but None if somebody else holds it, or it is gone: for sweepers, of which several
    are at work and none waits for another.
    """
    free = Run.objects.select_for_update(no_key=True, skip_locked=True)
    return free.filter(pk=run_id).first()


CHILDREN = """
SELECT id FROM agentruns_run WHERE parent_id = ANY(%s) AND id <> ALL(%s) ORDER BY id"""


def lock_tree(run_id: str) -> list[Run]:
    """Lock the run, then its descendants; each generation in id order. Raises NotFound.

    A child is born under its parent's lock, so once the parents are locked no new one appears;
    the tree is walked until a pass finds nobody new.
    """
    locked = {run_id: lock_run(run_id)}
    while True:
        new = [pk for (pk,) in prepared.run(CHILDREN, [list(locked), list(locked)])]
        if not new:
            return list(locked.values())
        locked |= {pk: lock_run(pk) for pk in new}


# Of two runs of a thread that want the same effect, one is at the gate at a time: their calls are
# told apart by nothing that a run's own lock guards.
ALONE = """(c.tier = 'read_only' OR pg_advisory_xact_lock(
  hashtextextended(r.thread_id || ' ' || c.tool || ' ' || c.effect_digest, 0)) IS NOT NULL)"""
# Advisory locks of a person, the first of their two numbers: while their runs are counted, and
# while their calls are, of which one holds so many places to act.
OWNERS_RUNS, OWNERS_CALLS = 7_350_211, 7_350_212
OF_OWNER = f"pg_advisory_xact_lock({OWNERS_CALLS}, r.owner_id) IS NOT NULL"
RUN_OF_CALL = "WHERE t.id = (SELECT run_id FROM agentruns_toolcall WHERE id = %s)"
RUN_OF_CALL_ALONE = f"""WHERE t.id = (
  SELECT c.run_id FROM agentruns_toolcall c JOIN agentruns_run r ON r.id = c.run_id
   WHERE c.id = %s AND {OF_OWNER} AND {ALONE})"""  # noqa: S608  (columns)


def lock_run_of(call_id: str, *, alone: bool = False) -> Run:
    """Lock the run of a call; with `alone`, first keep from doing so every other call of the owner,
    and to the same effect in the thread, which is only for who holds no run's lock yet. Raises
    NotFound.
    """
    of_call = RUN_OF_CALL_ALONE if alone else RUN_OF_CALL
    run = RUNS.first(f"{of_call} FOR NO KEY UPDATE", [call_id])
    if run is None:
        raise NotFound(call_id=call_id)
    return run


def lock_call(call_id: str) -> tuple[Run, ToolCall]:
    """Lock the run of a call, then read the call under that lock. Raises NotFound.

    By two statements: the second sees what was committed while the lock was waited for.
    """
    run = lock_run_of(call_id)
    call = CALLS.first("WHERE t.id = %s", [call_id])
    if call is None:
        raise NotFound(call_id=call_id)
    return run, call


def stop_of(run: Run) -> StopRequest | None:
    """The stop that the run is under, or that came when it had ended."""
    stop = STOPS.first("WHERE t.run_id = %s AND t.epoch = %s", [run.pk, run.epoch])
    if stop:
        stop.run = run
    return stop


class OpenCall(NamedTuple):
    """Of a call whose outcome is not known yet, what decides who goes next."""

    pk: str
    number: int
    turn: int
    state: str
    is_eager: bool
    unit: str
    is_postponed: bool


# Of the run `r`; a subquery, so that whoever reads something else of the run can have it along.
OPEN_CALLS = f"""(
  SELECT coalesce(jsonb_agg(jsonb_build_array(
           id, number, turn, state, is_eager, unit, next_attempt_at IS NOT NULL) ORDER BY number),
         '[]')
    FROM agentruns_toolcall
   WHERE run_id = r.id
     AND state NOT IN ({", ".join(f"'{state}'" for state in sorted(CALL.terminal))}))"""  # noqa: S608


def open_calls(run: Run) -> list[OpenCall]:
    """The calls of the run whose outcome is not known yet, in the model's order."""
    of_run = f"SELECT {OPEN_CALLS} FROM agentruns_run r WHERE r.id = %s"  # noqa: S608  (columns)
    return as_open_calls(prepared.row(of_run, [run.pk])[0])


def as_open_calls(found: str) -> list[OpenCall]:
    """What OPEN_CALLS has selected."""
    return [OpenCall(*each) for each in json.loads(found)]


def lock_call_if_free(call_id: str) -> tuple[Run, ToolCall] | None:
    """The same, but None if somebody else holds its run; see lock_run_if_free."""
    run_id = ToolCall.objects.values_list("run_id", flat=True).get(pk=call_id)
    run = lock_run_if_free(run_id)
    return (run, ToolCall.objects.get(pk=call_id)) if run else None


# Number, time and hashes are filled in by the database (models/ledger.py).
APPEND = """
INSERT INTO agentruns_ledgerevent (run_id, seq, kind, call_id, actor, data, sets, prev_hash, hash)
SELECT %s, 0, %s, %s, %s, %s, %s, '', ''"""


def record(
    run: Run,
    kind: str,
    *,
    actor: str,
    call: ToolCall | None = None,
    sets: Any = None,
    **data: Any,
) -> None:
    """Append a fact to the locked run's ledger, and ring for those who watch. `sets` (Sets): what
    people read of the rows that were saved with it; `save`, `change` and `born` say so.
    """
    prepared.run(APPEND, _event(run, kind, actor, call, data, sets))
    doorbell.ring_watchers(run.pk)


def _event(
    run: Run, kind: str, actor: str, call: ToolCall | None, data: dict[str, Any], sets: Sets | None
) -> list[Any]:
    return [run.pk, kind, call and call.pk, actor, Jsonb(storable(data)), Jsonb(sets or {})]


def move_run(
    run: Run,
    verb: str,
    *,
    actor: str,
    data: dict[str, Any] | None = None,
    sets: Any = None,
    **fields: Any,
) -> None:
    """Take the locked run through one transition, save it, record it. `sets`: of further rows."""
    if verb != "suspend":
        fields.setdefault("suspended_reason", "")  # only a run that waits has a reason to wait
    sets = merged(change(run, RUN, verb, fields), sets or {})
    record(run, RUN.verbs[verb].event, actor=actor, sets=sets, **(data or {}))


def move_call(
    run: Run,
    call: ToolCall,
    verb: str,
    *,
    actor: str,
    data: dict[str, Any] | None = None,
    sets: Any = None,
    **fields: Any,
) -> None:
    """Take one call of the locked run through one transition, save it, record it. `sets`: of
    further rows.

    Change and event are one statement: it is what every call does twice.
    """
    if call.secrets is not None and CALL.verbs[verb].target in CALL.terminal:
        fields["secrets"] = None  # nobody needs them any more
    sql, values, own = _changed(call, CALL, verb, fields)
    event = _event(run, CALL.verbs[verb].event, actor, call, data or {}, merged(own, sets or {}))
    both = f"WITH changed AS ({sql} RETURNING 1) {APPEND} FROM changed"
    _must_be_one(call, prepared.run(both, [*values, *event]))
    doorbell.ring_watchers(run.pk)


def move_output(
    run: Run, output: Output, verb: str, *, data: dict[str, Any] | None = None, **fields: Any
) -> None:
    """Take one turn's text of the locked run through one transition, save it, record it."""
    # Its event tells of all of it: of what was kept while it streamed, none has.
    sets = change(output, OUTPUT, verb, fields, is_whole=True)
    data = {"turn": output.turn, "offset": output.offset} | (data or {})
    record(run, OUTPUT.verbs[verb].event, actor=DRIVER, sets=sets, **data)


def born(row: models.Model) -> Sets:
    """What the event that makes this row sets. Before the row is saved: it gets its salts."""
    default, shown = type(row)(), type(row).SHOWN  # type: ignore[attr-defined]
    return seal(row, [name for name in shown.columns if _of(row, name) != _of(default, name)])


def add(row: models.Model) -> Sets:
    """Save a new row. What is returned is for its event."""
    sets = born(row)
    row.save(force_insert=True)
    return sets


def save(row: models.Model, **fields: Any) -> Sets:
    """Set and save these fields and no others: the database owns some of the rest. What is
    returned is for the event.
    """
    names, sets = _set(row, fields)
    _must_be_one(row, prepared.run(*prepared.update(row, names)))
    return sets


def change(
    row: models.Model,
    machine: Machine,
    verb: str,
    fields: dict[str, Any],
    *,
    is_whole: bool = False,
) -> Sets:
    """Take a row through one transition and save it. The caller holds the run's lock, and
    records the event in the same transaction, with what is returned: of the columns that differ,
    or of the whole row.

    Raises ConcurrentTransition if the row has left the state that it was read in.
    """
    sql, values, sets = _changed(row, machine, verb, fields, is_whole=is_whole)
    _must_be_one(row, prepared.run(sql, values))
    return sets


def _changed(
    row: models.Model,
    machine: Machine,
    verb: str,
    fields: dict[str, Any],
    *,
    is_whole: bool = False,
) -> tuple[str, list[Any], Sets]:
    """The statement that saves a transition, if the row is still where it was read."""
    was = getattr(row, machine.field)
    getattr(row, verb)()
    names, sets = _set(row, fields, is_whole=is_whole)
    sql, values = prepared.update(row, (machine.field, *names))
    return f'{sql} AND "{machine.field}" = %s', [*values, was], sets


def _set(
    row: models.Model, fields: dict[str, Any], *, is_whole: bool = False
) -> tuple[tuple[str, ...], Sets]:
    """What is to be saved, and what the event says of it. No fact is lost because an outside system
    sent a character that cannot be kept; and what people read is cut here, whoever wrote it.
    """
    changed = []
    for name, value in fields.items():
        before = _of(row, name)
        setattr(row, name, texts.kept(name, storable(value)))
        if _of(row, name) != before:
            changed.append(name)
    salts = getattr(row, "salts", None)
    sets = seal(row, None if is_whole else changed)
    has_new_salts = salts != getattr(row, "salts", None)
    return (*fields, "salts") if has_new_salts else tuple(fields), sets


def _of(row: models.Model, name: str) -> Any:
    return getattr(row, row._meta.get_field(name).attname)  # type: ignore[union-attr]


def _must_be_one(row: models.Model, done: Any) -> None:
    if done.rowcount != 1:
        raise ConcurrentTransition(f"{row.pk} has been changed since it was read.")
