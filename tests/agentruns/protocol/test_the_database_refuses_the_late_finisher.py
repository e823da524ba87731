"""A12: what buggy or late code might write, the database itself refuses."""

import pytest
from django.db import DatabaseError, connection

from agentruns.models import Run, ToolCall
from agentruns.protocol.turn import finish_turn
from tests.agentruns.steps import TEXT, Steps, kinds, now

LATE = {
    "completing a stopped run": "UPDATE agentruns_run SET status = 'completed'",
    "running a stopped run": "UPDATE agentruns_run SET status = 'running'",
    "sending a dropped call": "UPDATE agentruns_toolcall SET state = 'in_flight' WHERE number = 2",
    "landing a dropped call": "UPDATE agentruns_toolcall SET state = 'landed' WHERE number = 2",
    "unlanding a landed call": "UPDATE agentruns_toolcall SET state = 'failed' WHERE number = 1",
    "completing a cut text": "UPDATE agentruns_output SET status = 'streaming'",
    "changing what was recorded": "UPDATE agentruns_ledgerevent SET actor = 'x' WHERE seq = 1",
    "deleting what was recorded": "DELETE FROM agentruns_ledgerevent",
    "deleting a call": "DELETE FROM agentruns_toolcall",
    "deleting a stop": "DELETE FROM agentruns_stoprequest",
    "a call that is born sent": """
        INSERT INTO agentruns_toolcall
        SELECT (jsonb_populate_record(t, '{"id": "call_x", "number": 9, "position": 9,
            "request_id": "req_x", "state": "in_flight"}')).* FROM agentruns_toolcall t
        WHERE number = 1""",
    "a run that is born running": """
        INSERT INTO agentruns_run
        SELECT (jsonb_populate_record(r, '{"id": "run_x", "status": "running"}')).*
        FROM agentruns_run r""",
}


@pytest.mark.parametrize("statement", LATE.values(), ids=LATE)
def test_the_database_refuses_the_late_finisher(steps: Steps, statement: str) -> None:
    run, calls = steps.running("test.book", "test.send")
    steps.act(calls[0])
    steps.stop(run)

    with pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute(statement)

    assert now(run).status == "stopped_clean"


@pytest.mark.parametrize("status", ["draining", "suspended", "running"])
def test_a_call_starts_only_while_its_run_runs_in_its_epoch(steps: Steps, status: str) -> None:
    """The gate once more, where no code can go round it."""
    run, calls = steps.running("test.book")
    if status == "draining":
        steps.stop(run)
        statement = "UPDATE agentruns_toolcall SET state = 'in_flight'"
    elif status == "suspended":
        statement = "UPDATE agentruns_run SET status = 'suspended'; {}"
    else:
        statement = "UPDATE agentruns_run SET epoch = 2; {}"

    with pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute(statement.format("UPDATE agentruns_toolcall SET state = 'in_flight'"))

    assert ToolCall.objects.get(pk=calls[0].pk).state != "in_flight"


def test_the_driver_that_finishes_after_the_stop_is_refused_on_record(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    steps.propose(lease, "test.book")
    steps.stop(run)

    assert finish_turn(lease, TEXT, "stop") is False

    assert kinds(run)[-1] == "write.rejected_late"
    assert Run.objects.get().status == "cancel_requested", "until the driver gave its lease back"
