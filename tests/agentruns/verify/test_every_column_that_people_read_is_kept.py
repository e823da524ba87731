"""A5: whatever people read is refused a change by the database, and where that was switched off,
verify_ledger names the row and the column.
"""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, models, transaction

from agentruns.models import (
    TERMS,
    CallItem,
    Checkpoint,
    Grant,
    LedgerEvent,
    Output,
    Run,
    StopRequest,
    Thread,
    ToolCall,
)
from compensation import saga
from compensation.models import Compensation, UndoRequest
from review.models import Approval
from review.services import decide
from tests.agentruns.steps import Steps, anew, now
from tests.agentruns.verify.breaking import breaches, whats
from tests.forging import forge

pytestmark = pytest.mark.breaks_ledger

SHOWN: list[type[models.Model]] = [
    Run,
    ToolCall,
    CallItem,
    Output,
    StopRequest,
    Approval,
    UndoRequest,
    Compensation,
]
LEDGER = [*SHOWN, Thread, Grant, Checkpoint, LedgerEvent]

# These change while a run lives, without a step of it, or are said once, at any time: of a change
# only the ledger tells.
MAY_CHANGE = {
    Run: ("epoch", "turn", "suspended_reason", "degraded_at", *TERMS),
    ToolCall: ("undo_state", "last_lookup", "draft"),  # another draft, in place of one, is refused
    UndoRequest: ("stopped_at", "stopped_by"),
}

# What is neither said by an event nor kept by a trigger: how the work is shared out, and when. To
# change it can delay a step, have a worker lose its turn, or have a question asked again; what goes
# out passes the gate, which asks what is kept.
WORKING = {
    Run: {
        "lease_holder": "who thinks; a driver that is not named writes nothing more",
        "lease_expires_at": "when somebody else may",
        "drain_deadline": "when Stop no longer waits for what is under way",
        "degraded_turn": "which answer sums up after the budget was reached",
    },
    ToolCall: {
        "next_attempt_at": "when it is tried again, by the gate",
        "claim_token": "who is at it; an executor that is not named reports as a late one",
        "claim_expires_at": "when somebody else may",
        "deadline_at": "when a call that nobody reported is in doubt",
        "lookups": "how often it was looked up: the pauses between look-ups follow from it",
        "looked_up_at": "when it was; a look-up says more by its event",
        "next_lookup_at": "when it is again",
    },
    StopRequest: {"undo_is_due": "whether an undo by itself is still to begin; it has a gate"},
    Compensation: {
        "next_attempt_at": "when it is tried again, by the undo's gate",
        "claim_token": "who is at it",
        "claim_expires_at": "when somebody else may",
    },
}
# Added, and never changed; or named by what refers to them.
KEYS = {"id", "run_id", "call_id", "salts"}


@pytest.mark.parametrize("model", LEDGER, ids=lambda model: model.__name__)
def test_every_column_is_said_or_kept_or_is_how_the_work_is_shared_out(
    model: type[models.Model],
) -> None:
    """A new column has to be decided on."""
    triggers = model._meta.triggers  # type: ignore[attr-defined]
    kept = {name for each in triggers for name in getattr(each.operation, "columns", ())}
    is_fixed = any("UPDATE" in str(each.operation) and not each.condition for each in triggers)
    said = set(columns_of(model)) if hasattr(model, "SHOWN") else set()
    machines = {"status", "state"}
    left = {
        field.attname
        for field in model._meta.concrete_fields
        if not {field.name, field.attname} & (kept | said | KEYS | machines)
    }
    assert (set() if is_fixed else left) == WORKING.get(model, {}).keys()


@pytest.fixture
def story(steps: Steps, reviewer: User) -> Run:
    """Something of everything: an approval, items, a stop with a reason, and an undo."""
    run, (book, send) = steps.running("test.book", "test.send")
    steps.act(book)
    decide(send.pk, by=reviewer, verdict="approved", digest=send.args_digest)
    steps.act(send)
    lease = steps.think(run)
    batch = steps.propose(lease, "test.batch", count=2)
    steps.finish(lease)
    assert steps.act(batch).state == "landed"
    steps.stop(run, reason="That is enough.")
    saga.request_undo(run.pk, by=steps.owner, call_ids=[book.pk])
    while saga.run_next(run.pk):
        pass
    assert anew(book).undo_state == "undone"
    assert whats("I6") == []
    return now(run)


@pytest.fixture
def taken_back(transactional_db: None) -> Iterator[None]:
    """What is done to the rows meanwhile is not kept."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def other(field: models.Field) -> str:  # type: ignore[type-arg]
    """SQL: another value for the column."""
    column = f'"{field.column}"'
    target = getattr(field, "target_field", field)
    match target:
        case models.JSONField():
            return """'{"forged": 1}'::jsonb"""
        case models.DateTimeField():
            return f"coalesce({column}, now()) + interval '1 hour'"
        case models.CharField() | models.TextField():
            return "'forged'"
    return f"coalesce({column}, 0) + 1000"


def update(row: models.Model, name: str) -> str:
    field = row._meta.get_field(name)
    key = f"\"{row._meta.pk.column}\" = '{row.pk}'"  # type: ignore[union-attr]
    change = f'"{field.column}" = {other(field)}'  # type: ignore[union-attr,arg-type]
    return f"UPDATE {row._meta.db_table} SET {change} WHERE {key}"


def is_refused(statement: str) -> bool:
    """Whether a trigger of ours refuses it."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    except DatabaseError as error:
        return "pgtrigger: Cannot" in str(error) or "keeping: " in str(error)
    return False


def columns_of(model: type[models.Model]) -> tuple[str, ...]:
    columns: tuple[str, ...] = model.SHOWN.columns  # type: ignore[attr-defined]
    return (*columns, "args") if model is ToolCall else columns


def a_row_of(model: type[models.Model]) -> models.Model:
    rows = model._default_manager.order_by("pk")
    return (rows.filter(undo_state="undone") if model is ToolCall else rows)[0]


@pytest.mark.usefixtures("story", "taken_back")
@pytest.mark.parametrize("model", SHOWN, ids=lambda model: model.__name__)
def test_a_change_with_the_triggers_off_is_found_and_named(model: type[models.Model]) -> None:
    row = a_row_of(model)
    for name in columns_of(model):
        with transaction.atomic():
            forge(update(row, name))
            found = [w for whats in breaches().values() for w in (each.what for each in whats)]
            transaction.set_rollback(True)
        named = [what for what in found if str(row.pk) in what or model is Run]
        assert any(name in what or "arguments" in what for what in named), (name, found)
    assert whats("I6") == []


@pytest.mark.usefixtures("story", "taken_back")
@pytest.mark.parametrize("model", SHOWN, ids=lambda model: model.__name__)
def test_the_database_refuses_the_change(model: type[models.Model]) -> None:
    row = a_row_of(model)
    for name in columns_of(model):
        if name in MAY_CHANGE.get(model, ()):
            continue
        assert is_refused(update(row, name)), name


@pytest.mark.usefixtures("story", "taken_back")
@pytest.mark.parametrize("what", ["DELETE FROM {}", "TRUNCATE {} CASCADE"])
@pytest.mark.parametrize("model", LEDGER, ids=lambda model: model.__name__)
def test_nothing_is_deleted_and_no_table_emptied(model: type[models.Model], what: str) -> None:
    """As its owner, too: no trigger was switched off."""
    assert is_refused(what.format(model._meta.db_table))


@pytest.mark.usefixtures("story", "taken_back")
@pytest.mark.parametrize(
    "model", [model for model in SHOWN if model is not Run], ids=lambda model: model.__name__
)
def test_a_row_that_was_taken_out_is_missed(model: type[models.Model]) -> None:
    forge(f"DELETE FROM {model._meta.db_table} WHERE id = %s", a_row_of(model).pk)

    assert any("is gone" in what for what in whats("I6"))


@pytest.mark.usefixtures("story", "taken_back")
def test_a_row_that_nobody_told_of_is_found() -> None:
    forge(
        "INSERT INTO agentruns_callitem (call_id, position, key, receipt, salts, at) "
        "SELECT call_id, 9, 'x', receipt, salts, at FROM agentruns_callitem LIMIT 1"
    )

    assert any("callitem" in what for what in whats("I6"))


@pytest.mark.usefixtures("story", "taken_back")
def test_no_session_can_have_the_triggers_ignored(story: Run) -> None:
    names = [each.name for each in Run._meta.triggers]  # type: ignore[attr-defined]
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal")
        ids = ",".join(name for (name,) in cursor.fetchall())
        cursor.execute("SELECT set_config('pgtrigger.ignore', %s, true)", ["{" + ids + "}"])
        assert "run_is_kept" in names
    assert is_refused("UPDATE agentruns_run SET goal = 'forged'")


@pytest.mark.usefixtures("story", "taken_back")
@pytest.mark.parametrize(
    "change",
    [
        "agentruns_toolcall SET consent_expires_at = now() + interval '1 day'",
        "agentruns_toolcall SET horizon_at = now() - interval '1 day'",
        "agentruns_toolcall SET doubted_at = now()",
        "agentruns_toolcall SET is_uninterruptible = NOT is_uninterruptible",
        "agentruns_run SET acted = interval '0'",
        "agentruns_run SET acting_since = now()",
        "agentruns_grant SET revoked_at = NULL",
    ],
)
def test_what_the_gate_and_the_clocks_go_by_changes_with_a_step_only(change: str) -> None:
    assert is_refused(f"UPDATE {change}")


@pytest.mark.usefixtures("story", "taken_back")
def test_content_is_sealed_with_a_salt_of_its_own_that_goes_with_it(story: Run) -> None:
    """A digest gives nothing away: the same text has another one elsewhere, and no event has the
    salt that is needed to try out what it may have been.
    """
    salts = [salt for call in ToolCall.objects.all() for salt in call.salts.values()]
    events = [str(event.sets) for event in LedgerEvent.objects.all()]

    assert len(set(salts)) == len(salts) > 5
    assert not any(salt in event for salt in salts for event in events)
    call = ToolCall.objects.order_by("number")[0]
    assert call.summary not in str(events)
    assert {"summary", "receipt", "response"} <= call.salts.keys()
