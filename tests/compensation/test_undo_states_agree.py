"""compensation/states.py is the one declaration: django-fsm and the database agree with it."""

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction

from compensation.models import Compensation, UndoRequest
from compensation.states import COMPENSATION, LIVING, REASONS, WITHOUT_EFFECT
from tests.acting import call, proposed, ticket
from tests.forging import without_triggers


def test_django_fsm_has_exactly_the_declared_transitions() -> None:
    field = Compensation._meta.get_field("state")
    declared = {
        (verb.name, source, verb.target)
        for verb in COMPENSATION.verbs.values()
        for source in verb.sources
    }
    found = {(t.name, t.source, t.target) for t in field.get_all_transitions(Compensation)}
    assert found == declared


@pytest.mark.breaks_ledger
@pytest.mark.django_db(transaction=True)
def test_the_database_allows_exactly_the_declared_transitions(owner: User) -> None:
    run = proposed(owner, ticket())
    request = UndoRequest.objects.create(run=run, requested_by=owner, created_at=run.created_at)
    facts = {"request": request, "call": call(run), "position": 1, "created_at": run.created_at}
    row = Compensation.objects.filter(pk=Compensation.objects.create(**facts).pk)
    allowed = []
    for source in COMPENSATION.states:
        for target in COMPENSATION.states:
            with without_triggers():
                row.update(state=source)
            try:
                with transaction.atomic():
                    row.update(state=target)
            except DatabaseError:
                continue
            if source != target:
                allowed.append((source, target))
    assert sorted(allowed) == COMPENSATION.pairs()
    for later in set(COMPENSATION.states) - {COMPENSATION.initial}:
        with pytest.raises(DatabaseError, match="Cannot insert"):
            Compensation.objects.create(**facts, state=later)


def test_a_step_lives_or_has_ended_and_only_undone_is_for_good() -> None:
    assert {*LIVING, *WITHOUT_EFFECT} | COMPENSATION.terminal == set(COMPENSATION.states)
    assert not {a for a, _ in COMPENSATION.pairs()} & COMPENSATION.terminal


def test_every_reason_has_its_sentence() -> None:
    assert all(str(sentence).endswith(".") for sentence in REASONS.values())
