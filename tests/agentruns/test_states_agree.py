"""states.py is the one declaration: django-fsm and the database agree with it, pair by pair."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, models, transaction
from django.utils.timezone import now

from agentruns.models import Agent, CallItem, Output, Run, Thread, ToolCall
from agentruns.protocol.start import start_run
from agentruns.states import CALL, GROUPS, OUTPUT, READY, RUN, WAITING, Machine
from tests.forging import rewrite, without_triggers

MACHINES = [(RUN, Run), (CALL, ToolCall), (OUTPUT, Output)]
NAMES = ["run", "call", "output"]


@pytest.fixture
def rows(owner: User) -> dict[type[models.Model], models.Model]:
    """One row of each model, in a running run."""
    agent = Agent.objects.create(slug="plain", name="Plain", model="demo:inbox")
    run = start_run(owner=owner, agent=agent, goal="Say hello", ring=False)
    call = ToolCall.objects.create(
        run=run,
        turn=1,
        position=0,
        number=1,
        epoch=1,
        tool="x",
        tier="read_only",
        proposed_at=now(),
    )
    output = Output.objects.create(run=run, turn=1, epoch=1, started_at=now())
    return {Run: run, ToolCall: call, Output: output}


def _put(row: models.Model, column: str, value: str) -> None:
    """Write one column by SQL, past django-fsm."""
    table = row._meta.db_table
    extra = ", contradicted_at = now()" if value == "landed" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = %s{extra} WHERE id = %s", [value, row.pk])


def _have_an_item(row: models.Model) -> None:
    """Without one, a call that has not started does not land."""
    with without_triggers():
        CallItem.objects.create(call_id=row.pk, position=1, key="one", at=now())


def _database_allows(row: models.Model, machine: Machine, source: str, target: str) -> bool:
    with without_triggers():
        _put(row, machine.field, source)
    try:
        with transaction.atomic():
            if (machine, target) == (CALL, "landed") and source in READY:
                _have_an_item(row)
            _put(row, machine.field, target)
            transaction.set_rollback(True)
    except DatabaseError:
        return False
    return True


@pytest.mark.breaks_ledger
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("machine", "model"), MACHINES, ids=NAMES)
def test_the_database_allows_exactly_the_declared_transitions(
    machine: Machine, model: type[models.Model], rows: dict[type[models.Model], models.Model]
) -> None:
    if model is ToolCall:
        with without_triggers():
            _put(rows[Run], "status", "running")
    pairs = [(a, b) for a in machine.states for b in machine.states if a != b]
    allowed = [pair for pair in pairs if _database_allows(rows[model], machine, *pair)]
    with without_triggers():  # leave rows behind that a verified ledger may have
        _put(rows[model], machine.field, machine.initial)
        _put(rows[Run], "status", "queued")
    rewrite(ToolCall.objects.all(), contradicted_at=None)
    assert sorted(allowed) == machine.pairs()


@pytest.mark.parametrize(("machine", "model"), MACHINES, ids=NAMES)
def test_django_fsm_has_exactly_the_declared_transitions(machine: Machine, model: Any) -> None:
    field = model._meta.get_field(machine.field)
    declared = {
        (verb.name, source, verb.target)
        for verb in machine.verbs.values()
        for source in verb.sources
    }
    assert {(t.name, t.source, t.target) for t in field.get_all_transitions(model)} == declared
    assert field.choices == machine.choices()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("status", [s for s in RUN.states if s != RUN.initial])
def test_no_run_is_born_in_a_later_state(status: str, owner: User) -> None:
    agent = Agent.objects.create(slug="plain", name="Plain", model="demo:inbox")
    thread = Thread.objects.create(owner=owner)
    with pytest.raises(DatabaseError):
        Run.objects.create(owner=owner, agent=agent, thread=thread, goal="x", status=status)
    assert not Run.objects.exists()


@pytest.mark.parametrize("machine", [RUN, CALL, OUTPUT], ids=NAMES)
def test_nothing_leaves_a_terminal_state_but_the_contradicted(machine: Machine) -> None:
    leaving = {(a, b) for a, b in machine.pairs() if a in machine.terminal}
    assert leaving == ({("failed", "landed")} if machine is CALL else set())


def test_every_call_state_belongs_to_one_group() -> None:
    assert {state.group for state in CALL.states.values()} == {*GROUPS, WAITING}


def test_cancelled_failed_and_suspended_share_no_word_and_no_tone() -> None:
    kinds = [("stopped_clean",), ("failed",), ("suspended",)]
    labels = [{str(RUN.states[s].label) for s in kind} for kind in kinds]
    tones = [{RUN.states[s].tone for s in kind} for kind in kinds]
    assert len(set().union(*labels)) == len(set().union(*tones)) == len(kinds)
