"""The gate's one exception, where no code can go round it: its limits, tried with raw SQL."""

import pytest
from django.db import DatabaseError, connection

from tests.agentruns.orders import begun, ordered, states
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now, pass_time

SEND = (
    "UPDATE agentruns_toolcall SET state = 'in_flight' WHERE tool = '{tool}' AND run_id = '{run}'"
)


def execute(statement: str, **names: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement.format(**names))


@pytest.mark.breaks_ledger
def test_the_next_step_of_a_begun_unit_may_start(steps: Steps) -> None:
    run, calls = begun(steps)
    steps.stop(run)

    execute(SEND, tool="test.pay", run=run.pk)

    assert states(calls) == ["landed", "in_flight", "approved"]


BREACHES = {
    "a step whose turn has not come": "UPDATE agentruns_toolcall SET state = 'in_flight'"
    " WHERE tool = 'test.ship'",
    "a call that says that it is a step": "UPDATE agentruns_toolcall SET unit = 'order:shoes',"
    " unit_step = 2, state = 'in_flight' WHERE tool = 'test.book'",
    "a call that moves into the unit": "UPDATE agentruns_toolcall SET unit = 'order:shoes',"
    " unit_step = 2 WHERE tool = 'test.book'",
    "a step that takes another one's place": "UPDATE agentruns_toolcall SET unit_step = 2"
    " WHERE tool = 'test.ship'",
    "a call of no unit": "UPDATE agentruns_toolcall SET state = 'in_flight'"
    " WHERE tool = 'test.book'",
    "a call that says that it was not to be interrupted": "UPDATE agentruns_toolcall"
    " SET is_uninterruptible = true WHERE tool = 'test.book'",
}


@pytest.mark.parametrize("statement", BREACHES.values(), ids=BREACHES)
def test_nothing_else_may(steps: Steps, statement: str) -> None:
    run = steps.start()
    lease = steps.think(run)
    reserve = steps.propose(lease, "test.reserve", "shoes")
    for tool in ("test.pay", "test.ship", "test.book"):
        steps.propose(lease, tool, "shoes")
    steps.finish(lease)
    steps.act(reserve)
    steps.stop(run, pending="freeze")

    with pytest.raises(DatabaseError):
        execute(statement)


def test_a_unit_that_has_not_begun_may_not(steps: Steps) -> None:
    run, calls = ordered(steps)
    other, _calls = begun(steps)  # of the same name, in another run
    steps.stop(run)
    steps.stop(other)

    for tool in ("test.reserve", "test.pay"):
        with pytest.raises(DatabaseError):
            execute(SEND, tool=tool, run=run.pk)

    assert states(calls) == ["voided"] * 3
    pass_time(now(other))
    steps.sweep()


def test_nor_may_the_same_order_of_an_earlier_turn_open_it(steps: Steps) -> None:
    run, calls = begun(steps)
    for call in calls[1:]:
        steps.act(call)
    lease = steps.think(run)
    again = [steps.propose(lease, tool, "shoes", count=2) for tool in ("test.reserve", "test.pay")]
    steps.finish(lease)
    steps.stop(run)

    assert states(again) == ["voided", "voided"]
    with pytest.raises(DatabaseError):
        execute("UPDATE agentruns_toolcall SET state = 'in_flight' WHERE turn = 2")
    assert now(run).status == "stopped_clean"


@pytest.mark.parametrize("epoch", [1, 3])
def test_once_the_run_has_settled_or_gone_on_it_is_shut(steps: Steps, epoch: int) -> None:
    run, calls = begun(steps)
    steps.stop(run)
    pass_time(now(run))
    steps.sweep()
    assert now(run).status == "stopped_clean"
    if epoch == 3:
        steps.resume(run, frozen="void")

    for call in calls[1:]:
        with pytest.raises(DatabaseError):
            execute(SEND, tool=call.tool, run=run.pk)


def test_a_call_some_of_whose_items_are_out_is_not_denied_by_its_row(
    steps: Steps, outside: Outside
) -> None:
    """Nor is one landed of which nothing is known to be out."""
    run = steps.start()
    lease = steps.think(run)
    batch = steps.propose(lease, "test.batch", count=3)
    steps.finish(lease)
    ended = "UPDATE agentruns_toolcall SET state = '{state}'"
    item = (
        "INSERT INTO agentruns_callitem (call_id, position, key, receipt, at)"
        " SELECT id, 1, 'it 1', '{{}}', now() FROM agentruns_toolcall"
    )

    with pytest.raises(DatabaseError):
        execute(ended, state="landed")
    with pytest.raises(DatabaseError):
        execute(item)
    outside.answers["test.batch"] = ["", "busy"]
    assert steps.act(batch).state == "approved"
    for state in ("voided", "denied", "failed", "frozen"):
        with pytest.raises(DatabaseError):
            execute(ended, state=state)
    for statement in ("DELETE FROM agentruns_callitem", "UPDATE agentruns_callitem SET key = 'x'"):
        with pytest.raises(DatabaseError):
            execute(statement)
    assert anew(batch).state == "approved"
    steps.stop(run)
    assert anew(batch).state == "landed"
