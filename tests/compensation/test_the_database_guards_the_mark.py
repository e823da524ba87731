import pytest
from django.contrib.auth.models import User
from django.db import InternalError, ProgrammingError

from agentruns.errors import WrongState
from agentruns.models import ToolCall
from agentruns.protocol.ledger import EXECUTOR
from agentruns.protocol.undo import mark_undone
from compensation import saga
from tests.acting import call, mail, stopped, ticket
from tests.compensation.conftest import undo_all
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)
REFUSED = (ProgrammingError, InternalError)


def test_what_never_landed_is_never_marked_undone(owner: User) -> None:
    run = stopped(owner, mail())
    with pytest.raises(WrongState):
        mark_undone(run, call(run), actor=EXECUTOR)
    with pytest.raises(REFUSED):
        ToolCall.objects.filter(run=run).update(undo_state="undone")
    assert call(run).undo_state == ""


def test_the_mark_is_never_taken_back(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    undo_all(run)
    with pytest.raises(WrongState):
        mark_undone(run, call(run), actor=EXECUTOR)
    with pytest.raises(REFUSED):
        ToolCall.objects.filter(run=run).update(undo_state="")
    assert call(run).undo_state == "undone"
