"""The ledger: one lock per run, one event per change, in the same transaction.

Guarantees that no state changes without its event, and no event without its change (protocol §2).
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection, models

from agentruns import doorbell
from agentruns.errors import NotFound
from agentruns.models import LedgerEvent, Output, Run, ToolCall
from agentruns.states import CALL, OUTPUT, RUN, Machine
from tools.storable import storable

AGENT = "agent"
DRIVER = "driver"
EXECUTOR = "executor"
SWEEPER = "sweeper"

REPORT_GRACE = timedelta(seconds=2)  # for a call that used its whole time to say so
SEND_WINDOW = 2.0  # seconds from asking whether to act; look-ups begin much later


def person(user: Any) -> str:
    """The actor's name of somebody."""
    return f"user:{user.get_username()}"


class Clock(NamedTuple):
    """The database's clock: when this transaction began, and now."""

    began: datetime
    now: datetime


def clock() -> Clock:
    """Read the database's clock. A worker's own clock decides nothing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT transaction_timestamp(), clock_timestamp()")
        return Clock(*cursor.fetchone())


def report_by(now: datetime, timeout: float) -> datetime:
    """When a call that may take `timeout` seconds from now is in doubt, if it has not reported."""
    return now + timedelta(seconds=timeout) + REPORT_GRACE


def lock_run(run_id: str) -> Run:
    """Lock the run's row, the mutex of its ledger, and read it. Raises NotFound."""
    run = Run.objects.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is None:
        raise NotFound(run_id=run_id)
    return run


def lock_run_if_free(run_id: str) -> Run | None:
    """The same, but None if somebody else holds it, or it is gone: for sweepers, of which several
    are at work and none waits for another.
    """
    free = Run.objects.select_for_update(no_key=True, skip_locked=True)
    return free.filter(pk=run_id).first()


def lock_tree(run_id: str) -> list[Run]:
    """Lock the run, then its descendants; each generation in id order. Raises NotFound.

    A child is born under its parent's lock, so once the parents are locked no new one appears;
    the tree is walked until a pass finds nobody new.
    """
    locked = {run_id: lock_run(run_id)}
    while True:
        found = Run.objects.filter(parent__in=locked).exclude(pk__in=locked).order_by("pk")
        new = list(found.values_list("pk", flat=True))
        if not new:
            return list(locked.values())
        locked |= {pk: lock_run(pk) for pk in new}


def lock_call(call_id: str) -> tuple[Run, ToolCall]:
    """Lock the run of a call, then read the call under that lock. Raises NotFound."""
    run_id = ToolCall.objects.filter(pk=call_id).values_list("run_id", flat=True).first()
    if run_id is None:
        raise NotFound(call_id=call_id)
    return lock_run(run_id), ToolCall.objects.get(pk=call_id)


def lock_call_if_free(call_id: str) -> tuple[Run, ToolCall] | None:
    """The same, but None if somebody else holds its run; see lock_run_if_free."""
    run_id = ToolCall.objects.values_list("run_id", flat=True).get(pk=call_id)
    run = lock_run_if_free(run_id)
    return (run, ToolCall.objects.get(pk=call_id)) if run else None


def record(
    run: Run, kind: str, *, actor: str, call: ToolCall | None = None, **data: Any
) -> LedgerEvent:
    """Append a fact to the locked run's ledger, and ring for those who watch."""
    event = LedgerEvent.objects.create(
        run=run, kind=kind, actor=actor, call=call, data=storable(data)
    )
    doorbell.ring_watchers(run.pk)
    return event


def move_run(
    run: Run, verb: str, *, actor: str, data: dict[str, Any] | None = None, **fields: Any
) -> None:
    """Take the locked run through one transition, save it, record it."""
    if verb != "suspend":
        fields.setdefault("suspended_reason", "")  # only a run that waits has a reason to wait
    change(run, RUN, verb, fields)
    record(run, RUN.verbs[verb].event, actor=actor, **(data or {}))


def move_call(
    run: Run,
    call: ToolCall,
    verb: str,
    *,
    actor: str,
    data: dict[str, Any] | None = None,
    **fields: Any,
) -> None:
    """Take one call of the locked run through one transition, save it, record it."""
    change(call, CALL, verb, fields)
    record(run, CALL.verbs[verb].event, actor=actor, call=call, **(data or {}))


def move_output(
    run: Run, output: Output, verb: str, *, data: dict[str, Any] | None = None, **fields: Any
) -> None:
    """Take one turn's text of the locked run through one transition, save it, record it."""
    change(output, OUTPUT, verb, fields)
    data = {"turn": output.turn, "offset": output.offset} | (data or {})
    record(run, OUTPUT.verbs[verb].event, actor=DRIVER, **data)


def save(row: models.Model, **fields: Any) -> None:
    """Set and save these fields and no others: the database owns some of the rest."""
    _set(row, fields)
    row.save(update_fields=list(fields))


def change(row: models.Model, machine: Machine, verb: str, fields: dict[str, Any]) -> None:
    """Take a row through one transition and save it. The caller holds the run's lock, and
    records the event in the same transaction.
    """
    getattr(row, verb)()
    _set(row, fields)
    row.save(update_fields=[machine.field, *fields])


def _set(row: models.Model, fields: dict[str, Any]) -> None:
    """No fact is lost because an outside system sent a character that cannot be kept."""
    for name, value in fields.items():
        setattr(row, name, storable(value))
